// Operations and bytes counted per step, compared with networks small enough to count by hand.
#include "harness/training/step_counts.h"

#include <gtest/gtest.h>

#include "harness/plan/axes.h"

namespace headroom::step_counts_test {
namespace {

// x[B,3] -> linear to 2 -> loss over 2 classes.
class OneLayer final : public Workload {
 public:
  explicit OneLayer(std::int64_t batch) : batch_(batch) {}
  Program training_forward() const override {
    Program program{.name = "train"};
    ProgramBuilder build(program);
    const ValueId x = build.input("x", {batch_, 3}, DType::f32);
    const ValueId labels = build.input("labels", {batch_}, DType::s32);
    const ValueId w = build.persistent("w", {2, 3}, Role::weight, {});
    const ValueId b = build.persistent("b", {2}, Role::weight, {});
    const ValueId y = build.emit_one("linear", "fc", {x, w, b});
    program.loss = build.emit("softmax_cross_entropy", "loss", {y, labels})[0];
    program.results = {program.loss};
    return program;
  }
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return batch_; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t) const override { return nullptr; }

 private:
  std::int64_t batch_;
};

StepCounts counts(std::int64_t batch, const char* axis = "execution",
                  const char* value = "last_use") {
  Cell cell;
  set_axis(cell, axis, value);
  return count_step(plan_training(OneLayer(batch), cell, "dense"));
}

TEST(StepCounts, are_those_of_one_layer_worked_out_by_hand) {
  const StepCounts step = counts(8);
  // linear, loss, its backward, the weights' gradients, and the updates of w and b.
  EXPECT_EQ(step.ops, 6);
  EXPECT_EQ(step.recomputed, 0);
  EXPECT_EQ(step.flops, 2 * (2.0 * 8 * 2 * 3));  // forward, and backward to the weights
  const Bytes x = 8 * 3, y = 8 * 2, w = 6, b = 2, labels = 8, loss = 1, p = y;
  const Bytes elements = (x + w + b + y) + (y + labels + loss + p) + (p + labels + y) +
                         (x + y + w + b) +  // gradients have the size of the weights
                         (3 * w + 2 * w) +  // weight, gradient, velocity; two of them written
                         (3 * b + 2 * b);
  EXPECT_EQ(step.touched, 4 * elements);
}

TEST(StepCounts, hold_every_micro_batch) {
  const StepCounts parts = counts(4, "accumulation", "micro_batches(k=2)");
  // Twice: linear, loss, its backward, gradients, two sums. Once: two updates.
  EXPECT_EQ(parts.ops, 2 * 6 + 2);
  EXPECT_EQ(parts.flops, counts(8).flops);
}

TEST(StepCounts, leave_out_what_computes_nothing) {
  EXPECT_EQ(counts(8, "execution", "eager").ops, counts(8).ops);
  EXPECT_EQ(counts(8, "execution", "eager").touched, counts(8).touched);
}

}  // namespace
}  // namespace headroom::step_counts_test
