#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/program.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::liveness_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

// x, unread ──► a = relu(x), b = relu(a), c = a + b (result), d = relu(a) (unread), all [25]:
// 100 bytes each.
struct Chain {
  Program program{.name = "chain"};
  ProgramBuilder build{program};
  ValueId x = build.input("x", {25}, DType::f32);
  ValueId unread = build.input("unread", {25}, DType::f32);
  ValueId a = build.emit_one("relu", "a", {x});
  ValueId b = build.emit_one("relu", "b", {a});
  ValueId c = build.emit_one("add", "c", {a, b});
  ValueId d = build.emit_one("relu", "d", {a});

  Chain() { program.results = {c}; }
};

Program dense(Program program) {
  PersistentLayouts layouts;
  return lower(std::move(program), "dense", layouts);
}

TEST(LastUses, free_a_value_with_its_last_reader) {
  const Chain chain;
  const auto frees = last_uses(chain.program);
  EXPECT_THAT(frees[0], UnorderedElementsAre(chain.x, chain.unread));
  EXPECT_THAT(frees[1], IsEmpty());
  EXPECT_THAT(frees[2], ElementsAre(chain.b));
}

TEST(LastUses, free_an_unread_output_with_its_op_and_keep_results) {
  const Chain chain;
  EXPECT_THAT(last_uses(chain.program)[3], UnorderedElementsAre(chain.a, chain.d));
}

TEST(LastUses, keep_persistent_values) {
  Chain chain;
  chain.program.values[chain.a].persistent = true;  // as if it were a weight
  EXPECT_THAT(last_uses(chain.program)[3], ElementsAre(chain.d));
}

TEST(LastUses, free_a_workspace_with_its_op) {
  Chain chain;
  chain.program.values.push_back({.name = "scratch", .role = Role::workspace});
  const auto scratch = static_cast<ValueId>(chain.program.values.size() - 1);
  chain.program.ops[1].workspace = scratch;
  EXPECT_THAT(last_uses(chain.program)[1], ElementsAre(scratch));
}

TEST(LastUses, free_every_transient_value_of_a_training_step_once) {
  const Program program = testing::with_sgd(differentiate(testing::tiny_residual_net()));
  std::vector<int> freed(program.values.size());
  for (const auto& values : last_uses(program))
    for (const ValueId id : values) ++freed[id];
  for (const ValueId id : program.results) ++freed[id];
  for (ValueId id = 0; id < program.values.size(); ++id)
    EXPECT_EQ(freed[id], program.value(id).persistent ? 0 : 1) << program.value(id).name;
}

TEST(PeakLiveBytes, is_the_fullest_moment_of_a_hand_worked_chain) {
  const Chain chain;
  // op a: x, unread, a = 300; op b: a, b = 200; op c: a, b, c = 300; op d: a, c, d = 300.
  EXPECT_EQ(peak_live_bytes(dense(chain.program)), 300u);
}

TEST(PeakLiveBytes, counts_workspaces_while_their_op_runs) {
  Chain chain;
  Program lowered = dense(chain.program);
  lowered.values.push_back({.name = "scratch", .role = Role::workspace, .bytes = 150});
  lowered.ops[1].workspace = static_cast<ValueId>(lowered.values.size() - 1);
  EXPECT_EQ(peak_live_bytes(lowered), 350u);  // op b: a, b and 150
}

TEST(PeakLiveBytes, counts_persistent_values_throughout) {
  Chain chain;
  chain.build.persistent("w", {1000}, Role::weight, {});
  EXPECT_EQ(peak_live_bytes(dense(chain.program)), 4300u);
}

TEST(Dense, takes_the_bytes_of_the_elements_and_nothing_else) {
  PersistentLayouts layouts;
  const Program program =
      lower(testing::with_sgd(differentiate(testing::tiny_residual_net())), "dense", layouts);
  EXPECT_EQ(program.rules, "dense");
  for (const Value& value : program.values) {
    EXPECT_EQ(value.bytes, static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype))
        << value.name;
    EXPECT_EQ(value.layout, "") << value.name;
  }
  for (const Op& op : program.ops) {
    EXPECT_NE(op.kind, "reorder") << op.name;
    EXPECT_EQ(op.workspace, kNoValue) << op.name;
  }
  EXPECT_EQ(program.value(program.find("pool:1")).bytes, 2u * 10 * 4 * 3);  // 1 byte per maximum
}

TEST(Dense, refuses_a_persistent_value_of_two_shapes) {
  PersistentLayouts layouts;
  Program first{.name = "first"};
  ProgramBuilder(first).persistent("w", {3}, Role::weight, {});
  lower(first, "dense", layouts);
  Program second{.name = "second"};
  ProgramBuilder(second).persistent("w", {4}, Role::weight, {});
  EXPECT_THAT([&] { lower(second, "dense", layouts); },
              ThrowsMessage<Error>(HasSubstr("'w' is [3] in one Program and [4] in another")));
}

TEST(Lowering, offers_the_nearest_rules_for_unknown_ones) {
  PersistentLayouts layouts;
  EXPECT_THAT([&] { lower(Program{}, "densee", layouts); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'dense'?")));
}

}  // namespace
}  // namespace headroom::liveness_test
