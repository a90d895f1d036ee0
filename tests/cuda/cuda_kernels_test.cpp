// The GPU's kernels against plain loops on the host, all memory from bfc over cudaMalloc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/memory/validator.h"
#include "harness/program/lowering.h"

namespace headroom {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    const DeviceKind& cuda = Registry<DeviceKind>::instance().find("cuda");
    if (const std::string reason = cuda.unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
    device_ = cuda.create(Spec::parse("cuda(capacity=512MiB)"));
    device_->memory().record_into(&recorder_);
    recorder_.trace().header.capacity_bytes = device_->memory().capacity();
    strategy_ = make_allocator(Spec::parse("bfc(growth=on)"), device_->memory());
    allocator_ = std::make_unique<RecordingAllocator>(*strategy_, recorder_);
  }

  std::vector<float> uniform(std::int64_t count) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = distribution(random_);
    return values;
  }

  Block take(const Value& value) { return allocator_->allocate(value.bytes, {.role = value.role}); }

  // Runs the Program's one op on its inputs and returns the op's one output, which held NaN before.
  std::vector<float> run(const std::vector<std::vector<std::byte>>& inputs) {
    PersistentLayouts layouts;
    const Program lowered = lower(program_, "cudnn", layouts);
    const Op& op = lowered.ops.at(0);
    const auto compiled = device_->compile(lowered);
    std::vector<Block> blocks;
    std::vector<std::byte*> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Value& value = lowered.value(op.inputs[i]);
      blocks.push_back(take(value));
      operands.push_back(blocks.back().data);
      device_->write(value, operands.back(), inputs[i]);
    }
    const Value& output = lowered.value(op.outputs.at(0));
    std::vector<float> result(output.bytes / sizeof(float),
                              std::numeric_limits<float>::quiet_NaN());
    blocks.push_back(take(output));
    std::byte* const y = blocks.back().data;
    device_->write(output, y, std::as_bytes(std::span(result)));
    std::byte* workspace = nullptr;
    if (op.workspace != kNoValue) {
      blocks.push_back(take(lowered.value(op.workspace)));
      workspace = blocks.back().data;
    }
    compiled->run(0, {.inputs = operands, .outputs = {&y, 1}, .workspace = workspace});
    device_->read(output, y, std::as_writable_bytes(std::span(result)));
    for (const Block& block : blocks) allocator_->deallocate(block);
    return result;
  }

  std::vector<Bytes> workspaces_taken() const {
    std::vector<Bytes> taken;
    for (const TraceEvent& event : recorder_.trace().events)
      if (event.kind == EventKind::alloc && event.role == Role::workspace)
        taken.push_back(event.requested);
    return taken;
  }

  const std::random_device::result_type seed_ = std::random_device()();
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, seed_};
  std::mt19937 random_{seed_};
  Program program_{.name = "test"};
  ProgramBuilder build_{program_};
  TraceRecorder recorder_{64};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> allocator_;
};

// TF32 would miss these tolerances by an order of magnitude.
TEST_F(CudaKernels, linear_equals_the_plain_sum_of_products) {
  const std::int64_t n = 33, in = 301, out = 17;
  const auto x = uniform(n * in), w = uniform(out * in), b = uniform(out);
  build_.emit_one("linear", "fc",
                  {build_.input("x", {n, in}, DType::f32), build_.input("w", {out, in}, DType::f32),
                   build_.input("b", {out}, DType::f32)});
  std::vector<float> expected;
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = b[o];
      for (std::int64_t i = 0; i < in; ++i) sum += double{x[row * in + i]} * double{w[o * in + i]};
      expected.push_back(static_cast<float>(sum));
    }
  EXPECT_THAT(run({bytes_of(x), bytes_of(w), bytes_of(b)}), Pointwise(FloatNear(1e-4F), expected));
}

TEST_F(CudaKernels, convolution_equals_the_plain_sum_over_the_window) {
  const std::int64_t n = 3, c = 16, h = 13, w = 10, o = 5, kh = 3, kw = 2;
  const std::int64_t sh = 2, sw = 1, top = 1, left = 1;
  const std::int64_t oh = (h + 2 * top - kh) / sh + 1, ow = (w + 2 * left - kw) / sw + 1;
  const auto x = uniform(n * c * h * w), weights = uniform(o * c * kh * kw);
  build_.emit_one(
      "convolution", "conv",
      {build_.input("x", {n, c, h, w}, DType::f32), build_.input("w", {o, c, kh, kw}, DType::f32)},
      {{"strides", Shape{sh, sw}}, {"padding", Shape{top, left, top, left}}});
  std::vector<float> expected;
  const auto at = [&](std::int64_t image, std::int64_t channel, std::int64_t row,
                      std::int64_t column) {
    const bool inside = row >= 0 && row < h && column >= 0 && column < w;
    return inside ? double{x[((image * c + channel) * h + row) * w + column]} : 0.0;
  };
  for (std::int64_t i = 0; i < n * o * oh * ow; ++i) {
    const std::int64_t column = i % ow, row = i / ow % oh, filter = i / ow / oh % o;
    const std::int64_t image = i / ow / oh / o;
    double sum = 0;
    for (std::int64_t k = 0; k < c * kh * kw; ++k) {
      const std::int64_t dx = k % kw, dy = k / kw % kh, channel = k / kw / kh;
      sum += at(image, channel, row * sh - top + dy, column * sw - left + dx) *
             double{weights[filter * c * kh * kw + k]};
    }
    expected.push_back(static_cast<float>(sum));
  }
  EXPECT_THAT(run({bytes_of(x), bytes_of(weights)}), Pointwise(FloatNear(5e-4F), expected));
}

TEST_F(CudaKernels, convolution_refuses_padding_that_differs_between_sides) {
  build_.emit_one(
      "convolution", "conv",
      {build_.input("x", {1, 1, 8, 8}, DType::f32), build_.input("w", {1, 1, 3, 3}, DType::f32)},
      {{"strides", Shape{1, 1}}, {"padding", Shape{0, 1, 1, 1}}});
  EXPECT_THAT([&] { run({}); }, ThrowsMessage<InputError>(HasSubstr("differs between sides")));
}

TEST_F(CudaKernels, count_correct_counts_rows_with_the_label_largest) {
  const std::int64_t rows = 1'000'003, classes = 3;
  const auto logits = uniform(rows * classes);
  std::vector<std::int32_t> labels(rows);
  for (auto& label : labels) label = static_cast<std::int32_t>(random_() % classes);
  build_.emit_one("count_correct", "hits",
                  {build_.input("logits", {rows, classes}, DType::f32),
                   build_.input("labels", {rows}, DType::s32)});
  float expected = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = logits.begin() + row * classes;
    expected += std::max_element(first, first + classes) - first == labels[row] ? 1 : 0;
  }
  EXPECT_THAT(run({bytes_of(logits), bytes_of(labels)}), Each(expected));
}

TEST_F(CudaKernels, a_large_reduction_takes_its_temporary_storage_from_the_strategy) {
  const std::int64_t rows = 1'000'003;
  build_.emit_one(
      "count_correct", "hits",
      {build_.input("logits", {rows, 2}, DType::f32), build_.input("labels", {rows}, DType::s32)});
  run({bytes_of(uniform(2 * rows)), bytes_of(std::vector<std::int32_t>(rows))});
  // One partial sum for each of many blocks of threads: never a token byte.
  EXPECT_THAT(workspaces_taken(), ElementsAre(Gt(kBlockAlignment)));
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, programs_lowered_under_other_rules_are_refused) {
  build_.emit_one("linear", "fc",
                  {build_.input("x", {2, 3}, DType::f32), build_.input("w", {4, 3}, DType::f32),
                   build_.input("b", {4}, DType::f32)});
  PersistentLayouts layouts;
  const Program dense = lower(program_, "dense", layouts);
  EXPECT_THAT([&] { device_->compile(dense); },
              ThrowsMessage<InputError>(HasSubstr("lowered under 'dense'")));
}

}  // namespace
}  // namespace headroom
