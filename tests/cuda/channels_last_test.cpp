// Which images the CUDA device keeps channels-last.
#include "harness/device/cuda/module/channels_last.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/base/registry.h"
#include "harness/program/lowering/channels_last.h"
#include "harness/program/lowering/fusion.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/lowering/workspace_limit.h"
#include "harness/program/pass.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

bool all_run(const Program&, const Op&) { return true; }

Program lowered(Program forward, const char* precision) {
  forward = apply_pass<PrecisionStrategy>(std::move(forward), Spec::parse(precision));
  PersistentLayouts layouts;
  return lower(testing::with_sgd(differentiate(std::move(forward))), "dense", layouts);
}

std::vector<std::string> channels_last(const Program& program) {
  std::vector<std::string> names;
  for (const Value& value : program.values)
    if (is_channels_last(value)) names.push_back(value.name);
  return names;
}

std::vector<const Op*> reorders(const Program& program) {
  std::vector<const Op*> found;
  for (const Op& op : program.ops)
    if (op.kind == "reorder") found.push_back(&op);
  return found;
}

TEST(ChannelsLast, are_all_images_in_16_bits_of_a_residual_network_and_nothing_else) {
  const Program program =
      cuda::keep_channels_last(lowered(testing::tiny_residual_net(), "bf16"), all_run);
  std::size_t weights = 0;
  for (const Op& op : program.ops)
    if (is_convolution(op) && op.kind != "convolution_backward_weights")
      weights += program.value(op.inputs[1]).layout.empty() ? 1 : 0;
  EXPECT_EQ(weights, 5U);  // three forward, two backward: the images need no gradient
  for (const Value& value : program.values) {
    const bool of_16_bits = value.dtype == DType::bf16 && value.shape.size() == 4;
    const bool is_weight = value.shape.size() == 4 && value.shape[0] == 10;
    const bool is_image = (of_16_bits && !is_weight) || value.dtype == DType::u8;
    EXPECT_EQ(is_channels_last(value), is_image) << value.name;
  }
  EXPECT_THAT(reorders(program), IsEmpty());
}

TEST(ChannelsLast, are_no_images_in_f32) {
  const Program program =
      cuda::keep_channels_last(lowered(testing::tiny_residual_net(), "fp32"), all_run);
  EXPECT_THAT(channels_last(program), IsEmpty());
}

TEST(ChannelsLast, are_copied_for_a_convolution_that_cannot_take_them) {
  const auto runs = [](const Program& program, const Op& op) {
    for (const ValueId id : {op.inputs[0], op.outputs[0]})
      EXPECT_TRUE(is_channels_last(program.value(id)) || program.value(id).dtype == DType::f32);
    return op.name != "block.conv";
  };
  const Program program =
      cuda::keep_channels_last(lowered(testing::tiny_residual_net(), "bf16"), runs);
  validate(program);
  const auto copies = reorders(program);
  ASSERT_EQ(copies.size(), 2U);
  const auto op = std::find_if(program.ops.begin(), program.ops.end(),
                               [](const Op& one) { return one.name == "block.conv"; });
  const auto at = op - program.ops.begin();
  EXPECT_EQ(&program.ops[at - 1], copies[0]);
  EXPECT_EQ(&program.ops[at + 1], copies[1]);
  EXPECT_EQ(op->inputs[0], copies[0]->outputs[0]);
  EXPECT_EQ(op->outputs[0], copies[1]->inputs[0]);
  for (const ValueId id : {op->inputs[0], op->outputs[0]}) EXPECT_EQ(program.value(id).layout, "");
  EXPECT_TRUE(is_channels_last(program.value(copies[0]->inputs[0])));
  EXPECT_TRUE(is_channels_last(program.value(copies[1]->outputs[0])));
}

TEST(ChannelsLast, are_no_images_where_no_convolution_can_take_them) {
  const auto none = [](const Program&, const Op&) { return false; };
  const Program program =
      cuda::keep_channels_last(lowered(testing::tiny_residual_net(), "bf16"), none);
  EXPECT_THAT(channels_last(program), IsEmpty());
  EXPECT_THAT(reorders(program), IsEmpty());
}

// Upsampling has no kernel for them. An average has: it takes either.
TEST(ChannelsLast, are_no_images_that_meet_an_op_without_a_kernel_for_them) {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const Attributes same = {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}};
  const auto to = static_cast<std::int64_t>(DType::f16);
  const auto cast = [&](const char* name, Shape shape) {
    return build.emit_one("cast", std::string(name) + ".cast",
                          {build.input(name, std::move(shape), DType::f32)}, {{"to", to}});
  };
  const auto x = cast("x", {2, 3, 4, 5}), w = cast("w", {6, 3, 1, 1});
  const auto averaged = build.emit_one("convolution", "averaged", {x, w}, same);
  build.emit_one("global_average_pool", "average", {averaged});
  const auto other = cast("other", {2, 3, 4, 5});
  const auto larger = build.emit_one("convolution", "larger", {other, w}, same);
  build.emit_one("upsample", "up", {larger}, {{"factor", std::int64_t{2}}, {"scale", 1.0}});
  PersistentLayouts layouts;
  program = lower(std::move(program), "dense", layouts);
  EXPECT_THAT(channels_last(cuda::keep_channels_last(std::move(program), all_run)),
              UnorderedElementsAre("x.cast", "averaged"));
}

}  // namespace
}  // namespace headroom
