// Kernels that overwrite an operand, and how a Program declares it.
#include "harness/program/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/host_execution.h"

namespace headroom::in_place_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Avoids fusion: no batch normalisation precedes the relu, and the host reads the probabilities, so
// the loss stays separate from its gradient.
Program ops_apart() {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {3, 5}, DType::f32);
  const ValueId labels = build.input("labels", {3}, DType::s32);
  const ValueId weight = build.persistent("w", {7, 5}, Role::weight, {Fill::normal, 1});
  const ValueId bias = build.persistent("b", {7}, Role::weight, {Fill::normal, 1});
  const ValueId y =
      build.emit_one("relu", "relu", {build.emit_one("linear", "fc", {x, weight, bias})});
  program.results = build.emit("softmax_cross_entropy", "loss", {y, labels});
  program.loss = program.results[0];
  return program;
}

// Together these networks use every kind that can work in place.
std::vector<Program> every_network() {
  std::vector<Program> networks = {ops_apart()};
  for (const char* workload : {"resnet(preset=tiny)", "bert(preset=tiny,dropout=0.1)",
                               "gpt(preset=tiny,dropout=0.1)", "gan(preset=tiny)"})
    for (Program& forward : make_workload(Spec::parse(workload))->training_forwards())
      networks.push_back(std::move(forward));
  networks.push_back(
      apply_pass<PruningStrategy>(networks[1], Spec::parse("magnitude(copy=on,sparsity=0.5)")));
  return networks;
}

std::set<std::string> tried_in(Program forward, const std::string& precision) {
  const Spec spec = Spec::parse(precision);
  PersistentLayouts layouts;
  Program step = differentiate(apply_pass<PrecisionStrategy>(std::move(forward), spec));
  testing::HostExecution host(lower(std::move(step), "onednn", layouts));
  std::mt19937_64 random(testing::test_seed());
  testing::Tensors tensors(host.program());
  testing::fill_randomly(host.program(), tensors, random, 2);
  host.write_all(tensors);
  return host.run_in_place_too();
}

TEST(InPlace, gives_the_same_bits_in_every_kind_that_can) {
  std::set<std::string> tried;
  for (const Program& network : every_network()) tried.merge(tried_in(network, "fp32"));
  for (const std::string_view kind : kinds_with_in_place_choices())
    for (const InPlace& places : in_place_choices(kind))
      EXPECT_TRUE(tried.contains(std::string(kind) + " " + std::to_string(places.output) +
                                 " over " + std::to_string(places.input)))
          << kind << " " << places.output << " over " << places.input << " had no turn";
}

TEST(InPlace, gives_the_same_bits_in_bf16) {
  const auto networks = every_network();
  for (std::size_t i = 0; i + 1 < networks.size(); ++i) try {
      tried_in(networks[i], "bf16");
    } catch (const NotSupported& why) {
      GTEST_SKIP() << why.what();
    }
}

// x, y -> a = x + y, b = relu(a), in buffers of 100 bytes.
struct Chain {
  Program program{.name = "chain"};
  ProgramBuilder build{program};
  ValueId x = build.input("x", {25}, DType::f32);
  ValueId y = build.input("y", {25}, DType::f32);
  ValueId a = build.emit_one("add", "a", {x, y});
  ValueId b = build.emit_one("relu", "b", {a});

  Program lowered() {
    program.results = {b};
    PersistentLayouts layouts;
    return lower(program, "dense", layouts);
  }
};

TEST(InPlace, takes_the_memory_of_one_value_for_both) {
  Program program = Chain().lowered();
  EXPECT_EQ(peak_live_bytes(program), 300U);
  put_in_place(program.ops[0], {.output = 0, .input = 1});
  put_in_place(program.ops[1], {.output = 0, .input = 0});
  EXPECT_NO_THROW(validate(program));
  EXPECT_EQ(peak_live_bytes(program), 200U);
  EXPECT_THAT(last_uses(program)[0], ::testing::ElementsAre(Chain().x));
  EXPECT_THAT(last_uses(program)[1], ::testing::IsEmpty()) << "a lives on as the result";
}

TEST(InPlace, is_refused_over_what_is_read_later) {
  Chain chain;
  chain.build.emit_one("relu", "late", {chain.x});
  Program program = chain.lowered();
  put_in_place(program.ops[0], {.output = 0, .input = 0});
  EXPECT_THAT([&] { validate(program); },
              ThrowsMessage<Error>(HasSubstr("late: 'x' was overwritten before")));
}

TEST(InPlace, is_refused_over_weights_results_and_other_layouts) {
  Chain chain;
  const ValueId weight = chain.build.persistent("w", {25}, Role::weight, {});
  chain.build.emit_one("add", "sum", {weight, chain.b});
  Program program = chain.lowered();
  put_in_place(program.ops[2], {.output = 0, .input = 0});
  EXPECT_THAT([&] { validate(program); }, ThrowsMessage<Error>(HasSubstr("which is persistent")));
  put_in_place(program.ops[2], {.output = 0, .input = 1});
  EXPECT_THAT([&] { validate(program); },
              ThrowsMessage<Error>(HasSubstr("the results: 'b' was overwritten")));
  program.results.clear();
  EXPECT_NO_THROW(validate(program));
  program.values[chain.b].layout = "another";
  EXPECT_THAT([&] { validate(program); }, ThrowsMessage<Error>(HasSubstr("another layout")));
}

TEST(InPlace, is_refused_where_no_kernel_does_it) {
  Program program = Chain().lowered();
  put_in_place(program.ops[1], {.output = 0, .input = 1});
  EXPECT_THAT([&] { validate(program); },
              ThrowsMessage<Error>(HasSubstr("b (relu): cannot write output 0 over input 1")));
}

}  // namespace
}  // namespace headroom::in_place_test
