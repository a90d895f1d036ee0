// Batch normalisation in groups of channels, alone and fused with the ops behind it: compared with
// the naive reference in every channel layout, and with the separate ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/program/lowering/lowering.h"
#include "harness/program/onednn/layout.h"
#include "tests/unit/support/finite_differences.h"
#include "tests/unit/support/host_execution.h"

namespace headroom::batch_norm_kernels_test {
namespace {

using testing::Tensor;
using testing::Tensors;
using Tag = dnnl::memory::format_tag;

const Attributes kEpsilon = {{"epsilon", 1e-2}};

// Every kind once, each with its own operands.
struct EveryKind {
  Program program{.name = "every"};
  ProgramBuilder build{program};
  ValueId x, dy, a, scale, shift;

  explicit EveryKind(const Shape& image)
      : x(build.input("x", image, DType::f32)),
        dy(build.input("dy", image, DType::f32)),
        a(build.input("a", image, DType::f32)),
        scale(build.persistent("scale", {image[1]}, Role::weight, {})),
        shift(build.persistent("shift", {image[1]}, Role::weight, {})) {
    const auto plain = build.emit("batch_norm", "plain", {x, scale, shift}, kEpsilon);
    build.emit("batch_norm_backward", "plain.back", {x, dy, plain[1], plain[2], scale}, kEpsilon);
    const auto relu = build.emit("batch_norm_relu", "relu", {x, scale, shift}, kEpsilon);
    build.emit("batch_norm_relu_backward", "relu.back", {x, dy, relu[1], relu[2], scale, shift},
               kEpsilon);
    const auto sum = build.emit("batch_norm_add_relu", "sum", {x, scale, shift, a}, kEpsilon);
    build.emit("batch_norm_add_relu_backward", "sum.back", {x, dy, sum[1], sum[2], scale, sum[0]},
               kEpsilon);
  }

  // With all images in this layout.
  Program lowered(Tag tag) const {
    PersistentLayouts layouts;
    Program result = lower(program, "onednn", layouts);
    for (Value& value : result.values)
      if (value.shape.size() == 4)
        onednn::set_layout(value, {value.shape, dnnl::memory::data_type::f32, tag});
    return result;
  }
};

struct Layout {
  const char* name;
  Tag tag;
  std::vector<std::int64_t> channels;
};

class BatchNormOfGroups : public ::testing::TestWithParam<Layout> {};

TEST_P(BatchNormOfGroups, agrees_with_the_reference_alone_and_with_what_stands_behind) {
  std::mt19937_64 random(testing::test_seed());
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (const std::int64_t channels : GetParam().channels)
    for (const std::int64_t size : {std::int64_t{1}, between(2, 15), between(17, 24)}) {
      const Shape image = {between(2, 5), channels, size, between(1, 24)};
      SCOPED_TRACE(to_string(image));
      testing::HostExecution host(EveryKind(image).lowered(GetParam().tag));
      Tensors tensors(host.program());
      testing::fill_randomly(host.program(), tensors, random, 2);
      host.write_all(tensors);
      host.run_and_judge();
      host.run_and_judge();
      if (HasFatalFailure()) return;
    }
}

TEST_P(BatchNormOfGroups, writes_over_its_operands_with_the_same_bits) {
  std::mt19937_64 random(testing::test_seed());
  testing::HostExecution host(
      EveryKind({3, GetParam().channels.back(), 5, 7}).lowered(GetParam().tag));
  Tensors tensors(host.program());
  testing::fill_randomly(host.program(), tensors, random, 2);
  host.write_all(tensors);
  EXPECT_EQ(host.run_in_place_too().size(), 9U) << "ways in which these kinds can";
}

INSTANTIATE_TEST_SUITE_P(Layouts, BatchNormOfGroups,
                         ::testing::Values(Layout{"blocks_of_8", Tag::nChw8c, {1, 8, 10, 40}},
                                           Layout{"blocks_of_16", Tag::nChw16c, {3, 16, 17, 64}},
                                           Layout{"channels_last", Tag::nhwc, {8, 16, 24, 48}}),
                         [](const auto& info) { return std::string(info.param.name); });

// A sum of squares less the square of the sum would lose all digits here.
TEST(BatchNorm, knows_the_variance_of_numbers_far_from_zero) {
  const EveryKind every({4, 8, 30, 30});
  testing::HostExecution host(every.lowered(Tag::nChw8c));
  std::mt19937_64 random(testing::test_seed());
  Tensors tensors(host.program());
  testing::fill_randomly(host.program(), tensors, random, 2);
  for (double& x : tensors[every.x]) x = static_cast<float>(3000 + x);
  host.write_all(tensors);
  host.run();
  const Op& op = host.program().ops.front();
  Tensors exact(host.program());
  for (const ValueId id : op.inputs) exact[id] = tensors[id];
  testing::execute_reference(host.program(), op, exact);
  const Tensor found = host.read(op.outputs[2]);
  for (std::size_t c = 0; c < found.size(); ++c)
    EXPECT_NEAR(found[c] / exact[op.outputs[2]][c], 1, 1e-3);
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Checks the reference that judges the kernels: the derivative by operand `of` of the forward op
// must equal result `gradient` of the backward op.
void expect_derivative(const std::string& kind, std::size_t of, std::size_t gradient) {
  EveryKind every({3, 2, 2, 3});
  const Program& program = every.program;
  const auto is = [&](const std::string& name) {
    return *std::find_if(program.ops.begin(), program.ops.end(),
                         [&](const Op& op) { return op.kind == name; });
  };
  const Op forward = is(kind);
  const Op backward = is(kind + "_backward");
  std::mt19937_64 random(testing::test_seed());
  Tensors tensors(program);
  testing::fill_randomly(program, tensors, random, 2);
  testing::execute_reference(program, tensors);
  Tensor& operand = tensors[forward.inputs[of]];
  std::vector<std::size_t> elements(operand.size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  const Tensor slopes = testing::finite_differences(operand, elements, 1e-5, 1e-3, [&] {
    testing::execute_reference(program, forward, tensors);
    return dot(tensors[forward.outputs[0]], tensors[every.dy]);
  });
  const Tensor& found = tensors[backward.outputs[gradient]];
  for (std::size_t i = 0; i < slopes.size(); ++i)
    if (!std::isnan(slopes[i])) {
      EXPECT_NEAR(found[i], slopes[i], 1e-3 * (1 + std::abs(slopes[i])))
          << kind << " operand " << of << " at " << i;
    }
}

TEST(BatchNorm, with_relu_has_the_gradients_of_its_definition) {
  for (const std::size_t operand : {0, 1, 2})
    expect_derivative("batch_norm_relu", operand, operand);
}

TEST(BatchNorm, with_a_sum_and_relu_has_the_gradients_of_its_definition) {
  for (const std::size_t operand : {0, 1, 2, 3})
    expect_derivative("batch_norm_add_relu", operand, operand);
}

}  // namespace
}  // namespace headroom::batch_norm_kernels_test
