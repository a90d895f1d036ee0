// Optimizer steps: updates during the backward pass, gradient clipping, and gradients kept across
// steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/advance.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::optimizer_step_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::losses_of;
using ::testing::Optional;

Cell cell(const std::string& workload, const std::string& optimizer,
          const std::string& accumulation = "none",
          const std::string& device = testing::kSmallHost) {
  return testing::small_cell(workload, {{"optimizer", optimizer}, {"accumulation", accumulation}},
                             4, device);
}

Program stepped(const std::string& optimizer) {
  return testing::with_optimizer(testing::tiny_residual_net(), optimizer);
}

Bytes peak(const Program& program) { return peak_live_bytes(testing::lowered(program, "dense")); }

const char* const kWorkloads[] = {"resnet(depth=18,width=8,batch=4)",
                                  "gpt(preset=tiny,vocabulary=500)",
                                  "gan(batch=4,latent=8,width=4)"};

TEST(OptimizerStep, in_the_backward_pass_trains_to_the_same_losses_bit_by_bit) {
  for (const char* workload : kWorkloads)
    for (const std::string rule : {"sgd", "adam"})
      EXPECT_EQ(losses_of(cell(workload, rule + "(step=in_backward)")),
                losses_of(cell(workload, rule)))
          << workload << " " << rule;
}

TEST(OptimizerStep, in_the_backward_pass_keeps_fewer_gradients_alive) {
  EXPECT_LT(peak(stepped("sgd(step=in_backward)")), peak(stepped("sgd")));
  const Program program = stepped("sgd(step=in_backward)");
  validate(program);
  const auto last_backward = std::find_if(program.ops.rbegin(), program.ops.rend(),
                                          [](const Op& op) { return op.phase == Phase::backward; });
  EXPECT_LE(std::count_if(program.ops.rbegin(), last_backward,
                          [](const Op& op) { return op.phase == Phase::update; }),
            2)
      << "only those whose gradients come last";
}

TEST(OptimizerStep, with_gradients_zeroed_trains_the_same_and_keeps_them_between_steps) {
  for (const char* workload : kWorkloads)
    EXPECT_EQ(losses_of(cell(workload, "sgd(gradients=zeroed)")), losses_of(cell(workload, "sgd")));
  Bytes kept = 0;
  const Program program = stepped("sgd(gradients=zeroed)");
  for (const Value& value : program.values)
    if (value.persistent && value.role == Role::gradient)
      kept += static_cast<Bytes>(element_count(value.shape)) * 4;
  Bytes weights = 0;
  for (const Value& value : program.values)
    if (value.role == Role::weight) weights += static_cast<Bytes>(element_count(value.shape)) * 4;
  EXPECT_EQ(kept, weights);
}

TEST(OptimizerStep, clipped_computes_on_the_host_as_the_reference_does) {
  for (const char* optimizer : {"sgd(clip_norm=0.01)", "sgd(clip_norm=1000000)",
                                "adam(clip_norm=0.5)", "sgd(clip_norm=0.1,gradients=zeroed)"})
    testing::judge_on_host(stepped(optimizer));
}

TEST(OptimizerStep, clipped_leaves_gradients_whose_norm_is_the_limit_at_most) {
  std::mt19937_64 random(testing::test_seed());
  for (const double limit : {1e-3, 0.1, 1e6}) {
    const Program plain = differentiate(testing::tiny_residual_net());
    Program program = apply_pass<OptimizerStrategy>(
        plain, Spec::parse("sgd(clip_norm=" + std::to_string(limit) + ")"));
    testing::Tensors tensors(program);
    testing::fill_randomly(program, tensors, random, 4);
    const auto norm = [&] {
      double squares = 0;
      for (const auto& [weight, gradient] : plain.gradients)
        for (const double g : tensors[gradient]) squares += g * g;
      return std::sqrt(squares);
    };
    std::size_t next = 0;
    for (; program.ops[next].phase != Phase::update; ++next)
      testing::execute_reference(program, program.ops[next], tensors);
    const double before = norm();
    for (; next < program.ops.size(); ++next)
      testing::execute_reference(program, program.ops[next], tensors);
    EXPECT_NEAR(norm(), std::min(before, limit), 1e-9 * before);
  }
}

TEST(OptimizerStep, that_a_limit_does_not_reach_trains_as_without_it) {
  EXPECT_EQ(losses_of(cell(kWorkloads[0], "sgd(clip_norm=1000000)")),
            losses_of(cell(kWorkloads[0], "sgd")));
  EXPECT_NE(losses_of(cell(kWorkloads[0], "sgd(clip_norm=0.01)")),
            losses_of(cell(kWorkloads[0], "sgd")));
}

TEST(OptimizerStep, says_why_it_cannot_be_combined) {
  const auto reason = [](const std::string& optimizer, const std::string& accumulation) {
    const Sample sample = run_cell(cell("gpt(preset=tiny,vocabulary=500,batch=4)", optimizer,
                                        accumulation, "meta(capacity=1GiB)"),
                                   5, "");
    EXPECT_EQ(sample.status, SampleStatus::unsupported);
    return sample.reason;
  };
  EXPECT_THAT(reason("sgd(step=in_backward)", "micro_batches(k=2)"),
              AllOf(HasSubstr("accumulation=micro_batches"),
                    HasSubstr("before the gradients of all micro-batches are summed")));
  EXPECT_THAT(reason("adam(gradients=zeroed)", "micro_batches(k=2)"), HasSubstr("kept across"));
  EXPECT_THAT(reason("sgd(clip_norm=1,step=in_backward)", "none"),
              HasSubstr("the norm of all gradients is known only after the last one"));
  EXPECT_THAT(reason("sgd(gradients=zeroed,step=in_backward)", "none"), HasSubstr("free their"));
  EXPECT_EQ(run_cell(cell("gpt(preset=tiny,vocabulary=500,batch=4)", "sgd(clip_norm=1)",
                          "micro_batches(k=2)", "meta(capacity=1GiB)"),
                     5, "")
                .status,
            SampleStatus::ok);
}

TEST(OptimizerStep, refuses_what_it_does_not_know) {
  for (const char* bad :
       {"sgd(step=later)", "sgd(gradients=all)", "sgd(clip_norm=0)", "adam(clip_norm=-1)"})
    EXPECT_THROW(stepped(bad), InputError) << bad;
}

TEST(OptimizerStep, that_changes_no_weight_early_is_not_engaged) {
  const Program before = differentiate(testing::tiny_residual_net());
  const auto& strategy = Registry<OptimizerStrategy>::instance().find("sgd");
  const Spec spec = Spec::parse("sgd(step=in_backward)");
  EXPECT_THAT(strategy.why_not_engaged(spec, before, stepped("sgd")),
              Optional(HasSubstr("no weight of 'train' changes before the backward pass ends")));
  EXPECT_EQ(strategy.why_not_engaged(spec, before, stepped("sgd(step=in_backward)")), std::nullopt);
  EXPECT_THAT(strategy.why_not_engaged(Spec("sgd"), before, before),
              Optional(HasSubstr("has no weight")));
}

// In random straight-line programs, moving ops that add to kept sums changes no result.
TEST(Advance, keeps_what_every_op_reads) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 50; ++round) {
    Program program{.name = "random"};
    ProgramBuilder build(program);
    std::vector<ValueId> values = {build.input("x", {3}, DType::f32)};
    std::vector<ValueId> sums;
    for (int i = 0; i < 3; ++i)
      sums.push_back(build.persistent("sum" + std::to_string(i), {3}, Role::gradient, {}));
    const auto any = [&](const std::vector<ValueId>& of) { return of[random() % of.size()]; };
    for (int i = 0; i < 20; ++i) {
      const std::string name = "op" + std::to_string(i);
      if (random() % 3 == 0) {
        const ValueId sum = any(sums);
        build.emit("accumulate", name, {sum, any(values)},
                   {{"scale", 0.5}, {"start", std::int64_t{random() % 2 == 0}}}, {sum});
      } else {
        values.push_back(build.emit_one(
            "add", name, {any(values), random() % 2 == 0 ? any(sums) : any(values)}));
      }
    }
    program.results = {values.back()};
    const Program moved = advance(program, [](const Op& op) { return op.kind == "accumulate"; });
    validate(moved);
    testing::Tensors before(program), after(moved);
    testing::fill_randomly(program, before, random, 4);
    for (ValueId id = 0; id < program.values.size(); ++id) after[id] = before[id];
    testing::execute_reference(program, before);
    testing::execute_reference(moved, after);
    for (ValueId id = 0; id < program.values.size(); ++id) EXPECT_EQ(after[id], before[id]);
  }
}

}  // namespace
}  // namespace headroom::optimizer_step_test
