// Winograd convolutions give the results of direct ones, which the naive reference checks
// (host_kernels_test.cpp), within the workspace that the rules allow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>

#include "harness/program/lowering/lowering.h"
#include "harness/program/lowering/workspace_limit.h"
#include "tests/unit/support/host_execution.h"

namespace headroom::winograd_test {
namespace {

struct Passes {
  Program program{.name = "passes"};
  std::vector<ValueId> results;

  Passes(std::int64_t images, std::int64_t channels, Shape image, Shape strides = {1, 1}) {
    ProgramBuilder build(program);
    const Shape x_shape = {images, channels, image[0], image[1]};
    const Shape w_shape = {channels, channels, 3, 3};
    const Shape y_shape = {images, channels, (image[0] - 1) / strides[0] + 1,
                           (image[1] - 1) / strides[1] + 1};
    const Attributes window = {{"strides", strides}, {"padding", Shape{1, 1, 1, 1}}};
    const auto with = [&](const std::string& key, const Shape& shape) {
      Attributes attributes = window;
      attributes[key] = shape;
      return attributes;
    };
    const auto x = build.input("x", x_shape, DType::f32);
    const auto w = build.persistent("w", w_shape, Role::weight, {});
    const auto dy = build.input("dy", y_shape, DType::f32);
    results = {
        build.emit_one("convolution", "y", {x, w}, window),
        build.emit_one("convolution_backward_data", "dx", {dy, w}, with("input_shape", x_shape)),
        build.emit_one("convolution_backward_weights", "dw", {x, dy},
                       with("weight_shape", w_shape)),
        build.emit_one("transposed_convolution", "up", {dy, w}, window)};
    program.results = results;
  }

  Program lowered(const std::string& limit) const {
    PersistentLayouts layouts;
    return lower(program, "onednn(workspace_limit=" + limit + ")", layouts);
  }
};

// Workspace of each convolution, in order.
std::vector<Bytes> workspaces(const Program& lowered) {
  std::vector<Bytes> bytes;
  for (const Op& op : lowered.ops)
    if (is_convolution(op))
      bytes.push_back(op.workspace == kNoValue ? 0 : lowered.value(op.workspace).bytes);
  return bytes;
}

// Images that 4 × 4 tiles fit exactly, and images whose edges the tiles exceed.
class Winograd : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (DNNL_VERSION_MAJOR > 2 || direct_.rules.find("avx512") == std::string::npos)
      GTEST_SKIP() << "only oneDNN 2 has Winograd convolutions, and only for AVX-512: "
                   << direct_.rules;
    ASSERT_NE(workspaces(direct_), workspaces(winograd_));  // otherwise these tests prove nothing
  }

  const Passes passes_{4, 128, GetParam()};
  const Program direct_ = passes_.lowered("0"), winograd_ = passes_.lowered("64MiB");
};

TEST_P(Winograd, gives_in_all_passes_what_the_direct_convolution_gives) {
  testing::HostExecution direct(direct_), winograd(winograd_);
  std::mt19937_64 random(testing::test_seed());
  testing::Tensors tensors(direct_);
  testing::fill_randomly(direct_, tensors, random, 2);
  for (testing::HostExecution* run : {&direct, &winograd}) {
    for (const char* name : {"x", "w", "dy"}) {
      const ValueId id = passes_.program.find(name);
      run->write(id, tensors[id]);
    }
    run->run();
  }
  for (const ValueId id : passes_.results) {
    const testing::Tensor wanted = direct.read(id), found = winograd.read(id);
    ASSERT_EQ(found.size(), wanted.size());
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      error = std::max(error, std::abs(found[i] - wanted[i]));
    }
    // Ten times the observed error; the transforms have factors of up to 8.
    EXPECT_LT(error, 2e-5 * largest) << passes_.program.value(id).name;
  }
}

TEST_P(Winograd, takes_no_more_workspace_than_the_rules_allow) {
  const std::vector<Bytes> free = workspaces(winograd_);
  const Bytes most = *std::max_element(free.begin(), free.end());
  for (const Bytes limit : {most, most - 1}) {
    const std::vector<Bytes> limited = workspaces(passes_.lowered(std::to_string(limit)));
    for (std::size_t pass = 0; pass < free.size(); ++pass) {
      const Bytes otherwise = workspaces(direct_)[pass];
      EXPECT_EQ(limited[pass], free[pass] <= limit ? free[pass] : otherwise) << pass;
    }
  }
}

TEST_P(Winograd, is_left_where_the_direct_convolution_does_less) {
  const Passes few_channels(4, 16, GetParam()), strided(4, 128, GetParam(), {2, 2});
  for (const Passes& passes : {few_channels, strided})
    EXPECT_EQ(workspaces(passes.lowered("1GiB")), workspaces(passes.lowered("0")));
}

INSTANTIATE_TEST_SUITE_P(Images, Winograd, ::testing::Values(Shape{16, 16}, Shape{27, 18}));

}  // namespace
}  // namespace headroom::winograd_test
