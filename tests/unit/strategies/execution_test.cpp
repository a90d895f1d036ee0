// Lifetimes of values: eager execution keeps what a training loop has names for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::execution_test {
namespace {

Sample run(const std::string& workload, const std::string& execution, const std::string& device,
           const std::string& optimizer = "sgd") {
  return run_cell(testing::small_cell(
                      workload, {{"execution", execution}, {"optimizer", optimizer}}, 3, device),
                  5, "");
}

TEST(Eager, changes_no_loss) {
  for (const char* workload :
       {"resnet(depth=18,width=8,batch=4)", "gpt(preset=tiny,vocabulary=500)",
        "gan(batch=4,latent=8,width=4)"}) {
    const Sample last_use = run(workload, "last_use", "host(capacity=1GiB)");
    const Sample eager = run(workload, "eager", "host(capacity=1GiB)");
    ASSERT_EQ(eager.status, SampleStatus::ok) << eager.reason;
    EXPECT_EQ(eager.loss, last_use.loss) << workload;
  }
}

TEST(Eager, holds_the_batch_the_output_and_every_gradient_to_the_end_of_the_step) {
  const Program plain = differentiate(testing::tiny_residual_net());
  const Program eager =
      apply_pass<ExecutionStrategy>(testing::with_sgd(plain), Spec::parse("eager"));
  const auto freed = last_uses(eager).back();
  for (const auto& [weight, gradient] : plain.gradients)
    EXPECT_THAT(freed, ::testing::Contains(gradient)) << plain.value(weight).name;
  for (const ValueId input : plain.inputs) EXPECT_THAT(freed, ::testing::Contains(input));
  EXPECT_THAT(freed, ::testing::Contains(plain.find("head")));
}

// The loss may read the output through a copy that the library wants.
TEST(Eager, holds_the_output_itself_and_no_copy_in_another_layout) {
  for (Program& forward : make_workload(Spec::parse("gan(preset=tiny)"))->training_forwards()) {
    PersistentLayouts layouts;
    const Program eager = apply_pass<ExecutionStrategy>(
        lower(differentiate(std::move(forward)), "onednn", layouts), Spec::parse("eager"));
    const auto held = last_uses(eager).back();
    for (const Op& op : eager.ops)
      if (op.kind == "reorder") {
        EXPECT_THAT(held, ::testing::Not(::testing::Contains(op.outputs[0]))) << op.name;
      }
  }
}

TEST(Eager, never_takes_less_memory) {
  for (const char* workload :
       {"resnet(depth=50,batch=4)", "bert(size=mini,batch=4,sequence=64)", "gan(batch=16)"}) {
    const char* const meta = "meta(capacity=16GiB)";
    EXPECT_GE(run(workload, "eager", meta).lower_bound_bytes,
              run(workload, "last_use", meta).lower_bound_bytes)
        << workload;
  }
}

TEST(Eager, is_refused_where_gradients_go_before_the_step_ends) {
  const Sample sample =
      run("gpt(preset=tiny)", "eager", "meta(capacity=1GiB)", "sgd(step=in_backward)");
  EXPECT_EQ(sample.status, SampleStatus::unsupported);
  EXPECT_THAT(sample.reason, ::testing::HasSubstr("execution=eager"));
}

}  // namespace
}  // namespace headroom::execution_test
