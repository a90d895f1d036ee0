// checkpointing=optimal compared with exhaustive search on small chains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/program/pass.h"
#include "harness/program/recomputed.h"
#include "strategies/checkpointing/held.h"
#include "strategies/checkpointing/journeys.h"
#include "strategies/checkpointing/regions.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/random_net.h"

namespace headroom::optimal_checkpointing_test {
namespace {

using checkpointing::held_bytes;
using ::testing::HasSubstr;

std::int64_t between(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

// Different modules, each of which reads only the result of the one before.
Program random_chain(std::mt19937_64& random, std::int64_t modules) {
  Program program{.name = "chain"};
  ProgramBuilder build(program);
  ValueId x = build.input("x", {4, between(random, 2, 40)}, DType::f32);
  const ValueId labels = build.input("labels", {4}, DType::s32);
  const ValueId key = build.input("key", {2}, DType::s32);
  const auto weight = [&](Shape shape) {
    return build.persistent(fmt::format("weight{}", program.values.size()), std::move(shape),
                            Role::weight, {Fill::normal, 0.3});
  };
  for (std::int64_t module = 0; module < modules; ++module) {
    const ValueId in = x;
    for (std::int64_t op = between(random, 1, 5); op > 0; --op) {
      const std::string name = fmt::format("layer.{}.{}", module, op);
      const std::int64_t width = program.value(x).shape[1],
                         kind = x == program.inputs[0] ? 6 : between(random, 1, 6);
      if (kind == 1) x = build.emit_one("gelu", name, {x});
      if (kind == 2) x = build.emit_one("relu", name, {x});
      if (kind == 3 && program.value(in).shape == program.value(x).shape)
        x = build.emit_one("add", name, {x, in});
      if (kind == 4) x = build.emit("dropout", name, {x, key}, {{"rate", 0.5}, {"stream", op}})[0];
      if (kind == 5)
        x = build.emit("layer_norm", name, {x, weight({width}), weight({width})},
                       {{"epsilon", 0.1}})[0];
      if (kind == 6 || (op == 1 && x == in)) {
        const std::int64_t outputs = between(random, 2, 40);
        x = build.emit_one("linear", name + ".linear",
                           {x, weight({outputs, width}), weight({outputs})});
      }
    }
  }
  program.loss = build.emit("softmax_cross_entropy", "loss", {x, labels})[0];
  program.results = {program.loss};
  return differentiate(std::move(program));
}

using Work = std::pair<double, Bytes>;

Work repeated_work(const Program& plain, const Program& rewritten) {
  Bytes touched = 0;
  for (const Op& op : rewritten.ops) {
    if (!is_recomputed(op)) continue;
    for (const auto* ids : {&op.inputs, &op.outputs})
      for (const ValueId id : *ids) touched += checkpointing::plain_bytes(rewritten.value(id));
  }
  return {total_flops(rewritten) - total_flops(plain), touched};
}

struct Choice {
  Bytes held;
  Work work;
};

// Tries every way to cut the modules into segments and to recompute each segment or not. `keep`
// says where the values at the start of segments are kept.
void try_all(const Program& plain, const std::vector<checkpointing::Unit>& units, std::size_t from,
             const checkpointing::Regions& regions, const std::string& keep,
             std::vector<Choice>& choices) {
  if (from == units.size()) {
    const Program rewritten = checkpointing::keep_where_asked(
        checkpointing::recompute(plain, regions), Spec::parse("optimal(" + keep + ")"));
    choices.push_back({held_bytes(rewritten), repeated_work(plain, rewritten)});
    return;
  }
  try_all(plain, units, from + 1, regions, keep, choices);
  for (std::size_t end = from + 1; end <= units.size(); ++end) {
    checkpointing::Regions more = regions;
    const int region = more.add(0);
    for (std::size_t op = units[from].first; op < units[end - 1].end; ++op) more.of_op[op] = region;
    try_all(plain, units, end, more, keep, choices);
  }
}

std::vector<Choice> all_choices(const Program& plain, const std::string& keep) {
  std::vector<Choice> choices;
  try_all(plain, checkpointing::units_of(plain), 0,
          checkpointing::Regions(checkpointing::forward_ops(plain)), keep, choices);
  return choices;
}

Program within(const Program& plain, Bytes budget, const std::string& keep = "keep=device") {
  return apply_pass<CheckpointingStrategy>(
      plain, Spec::parse(fmt::format("optimal(budget={},{})", budget, keep)));
}

class OptimalKeeping : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpointing, OptimalKeeping,
                         ::testing::Values("keep=device", "keep=host,prefetch=0"));

TEST_P(OptimalKeeping, does_the_least_work_of_all_choices_that_hold_no_more_than_the_budget) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 10; ++round) {
    const Program plain = random_chain(random, between(random, 1, 5));
    const std::vector<Choice> choices = all_choices(plain, GetParam());
    std::set<Bytes> budgets;  // the answer changes at the bytes of each choice
    for (const Choice& one : choices) budgets.insert({one.held, one.held - 1});
    for (const Bytes budget : budgets) {
      SCOPED_TRACE(fmt::format("round {}, budget {}", round, budget));
      const Choice* best = nullptr;
      for (const Choice& choice : choices)
        if (choice.held <= budget && (best == nullptr || choice.work < best->work)) best = &choice;
      if (best == nullptr) {
        EXPECT_THROW(within(plain, budget, GetParam()), NotSupported);
        continue;
      }
      const Program rewritten = within(plain, budget, GetParam());
      ASSERT_LE(held_bytes(rewritten), budget);
      ASSERT_EQ(repeated_work(plain, rewritten), best->work);
    }
  }
}

TEST_P(OptimalKeeping, names_the_smallest_budget_there_is_where_it_is_given_less) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 10; ++round) {
    const Program plain = random_chain(random, between(random, 1, 5));
    const std::vector<Choice> choices = all_choices(plain, GetParam());
    const Bytes least =
        std::min_element(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
          return a.held < b.held;
        })->held;
    try {
      within(plain, least - 1, GetParam());
      FAIL() << "is planned";
    } catch (const NotSupported& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("budget={} or more", least)));
    }
    EXPECT_LE(held_bytes(within(plain, least, GetParam())), least);
  }
}

TEST_P(OptimalKeeping, holds_no_more_than_the_budget_where_modules_read_from_far_back) {
  std::mt19937_64 random(testing::test_seed());
  const bool on_host = GetParam().starts_with("keep=host");
  int planned = 0;
  for (int round = 0; round < 100; ++round) {
    const testing::RandomNet net(random(), 8, {.across_samples = true, .ignored_labels = false});
    const Program plain = differentiate(net.training_forward());
    const Bytes all = held_bytes(plain), budget = all - random() % (all / 2);
    const std::string ahead = on_host ? "keep=host,prefetch=" + std::to_string(random() % 4) : "";
    try {
      EXPECT_LE(held_bytes(within(plain, budget, on_host ? ahead : GetParam())), budget) << round;
      ++planned;
    } catch (const NotSupported&) {
    }
  }
  EXPECT_GT(planned, 20);
}

TEST(OptimalCheckpointing, takes_a_share_of_what_the_plain_step_holds) {
  std::mt19937_64 random(testing::test_seed());
  const Program plain = random_chain(random, 5);
  EXPECT_EQ(
      recomputed_ops(apply_pass<CheckpointingStrategy>(plain, Spec::parse("optimal(budget=1)"))),
      0);
  EXPECT_EQ(recomputed_ops(within(plain, held_bytes(plain))), 0);
  EXPECT_GT(recomputed_ops(within(plain, held_bytes(plain) - 1)), 0);
  EXPECT_THROW(apply_pass<CheckpointingStrategy>(plain, Spec::parse("optimal(budget=0.01)")),
               NotSupported);
}

TEST(OptimalCheckpointing, refuses_a_budget_that_is_none) {
  std::mt19937_64 random(testing::test_seed());
  const Program plain = random_chain(random, 3);
  for (const char* bad :
       {"optimal(budget=0)", "optimal(budget=-1)", "optimal(budget=much)", "optimal(budgte=1GiB)"})
    EXPECT_THROW(apply_pass<CheckpointingStrategy>(plain, Spec::parse(bad)), InputError) << bad;
}

}  // namespace
}  // namespace headroom::optimal_checkpointing_test
