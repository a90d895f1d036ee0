// The GPU's kernels against the reference, all memory from bfc over cudaMalloc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/memory/validator.h"
#include "harness/program/lowering.h"
#include "tests/unit/reference/reference.h"

namespace headroom {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

// On these shapes plain f32 sums of normal products are off by at most 5e-5, and the best of twenty
// simulated TF32 runs by 9e-3.
constexpr double kTolerance = 5e-4;
constexpr std::int64_t kClasses = 3;

template <typename T>
std::vector<std::byte> bytes_of(const testing::Tensor& tensor) {
  const std::vector<T> values(tensor.begin(), tensor.end());
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Programs of one op whose operands are all inputs.
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

  ValueId input(const char* name, Shape shape, DType dtype = DType::f32) {
    return build_.input(name, std::move(shape), dtype);
  }

  Program lower_for_gpu() const {
    PersistentLayouts layouts;
    return lower(program_, "cudnn", layouts);
  }

  std::byte* take(const Value& value) {
    blocks_.push_back(allocator_->allocate(value.bytes, {.role = value.role}));
    return blocks_.back().data;
  }

  // Runs the op on random inputs; its one output held NaN before.
  void run_and_judge() {
    std::mt19937_64 random(testing::test_seed());
    testing::Tensors tensors(program_);
    testing::fill_randomly(program_, tensors, random, kClasses);
    testing::reference_run(program_, tensors);

    const Program lowered = lower_for_gpu();
    const Op& op = lowered.ops.at(0);
    const auto compiled = device_->compile(lowered);
    std::vector<std::byte*> operands;
    for (const ValueId id : op.inputs) {
      const Value& value = lowered.value(id);
      operands.push_back(take(value));
      device_->write(value, operands.back(),
                     value.dtype == DType::s32 ? bytes_of<std::int32_t>(tensors[id])
                                               : bytes_of<float>(tensors[id]));
    }
    const Value& output = lowered.value(op.outputs.at(0));
    std::vector<float> result(output.bytes / sizeof(float),
                              std::numeric_limits<float>::quiet_NaN());
    std::byte* const y = take(output);
    device_->write(output, y, std::as_bytes(std::span(result)));
    std::byte* const workspace =
        op.workspace == kNoValue ? nullptr : take(lowered.value(op.workspace));
    compiled->run(0, {.inputs = operands, .outputs = {&y, 1}, .workspace = workspace});
    device_->read(output, y, std::as_writable_bytes(std::span(result)));
    for (const Block& block : blocks_) allocator_->deallocate(block);
    EXPECT_THAT(result, Pointwise(DoubleNear(kTolerance), tensors[op.outputs[0]]));
  }

  std::vector<Bytes> workspaces_taken() const {
    std::vector<Bytes> taken;
    for (const TraceEvent& event : recorder_.trace().events)
      if (event.kind == EventKind::alloc && event.role == Role::workspace)
        taken.push_back(event.requested);
    return taken;
  }

  Program program_{.name = "test"};
  ProgramBuilder build_{program_};
  TraceRecorder recorder_{64};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> allocator_;
  std::vector<Block> blocks_;
};

TEST_F(CudaKernels, linear_equals_the_reference) {
  build_.emit_one("linear", "fc", {input("x", {33, 301}), input("w", {17, 301}), input("b", {17})});
  run_and_judge();
}

TEST_F(CudaKernels, convolution_equals_the_reference) {
  build_.emit_one("convolution", "conv", {input("x", {3, 16, 13, 10}), input("w", {5, 16, 3, 2})},
                  {{"strides", Shape{2, 1}}, {"padding", Shape{2, 1, 2, 1}}});
  run_and_judge();
}

TEST_F(CudaKernels, convolution_of_a_network_equals_the_reference) {
  build_.emit_one("convolution", "conv", {input("x", {2, 32, 14, 14}), input("w", {32, 32, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  run_and_judge();
}

TEST_F(CudaKernels, convolution_refuses_padding_that_differs_between_sides) {
  build_.emit_one("convolution", "conv", {input("x", {1, 1, 8, 8}), input("w", {1, 1, 3, 3})},
                  {{"strides", Shape{1, 1}}, {"padding", Shape{0, 1, 1, 1}}});
  EXPECT_THAT([&] { lower_for_gpu(); },
              ThrowsMessage<InputError>(HasSubstr("differs between sides")));
}

TEST_F(CudaKernels, count_correct_equals_the_reference) {
  build_.emit_one("count_correct", "hits",
                  {input("logits", {517, kClasses}), input("labels", {517}, DType::s32)});
  run_and_judge();
}

TEST_F(CudaKernels, a_large_reduction_takes_its_temporary_storage_from_the_strategy) {
  constexpr std::int64_t kRows = 1'000'003;
  build_.emit_one("count_correct", "hits",
                  {input("logits", {kRows, kClasses}), input("labels", {kRows}, DType::s32)});
  run_and_judge();
  // One partial sum for each of many blocks of threads: never a token byte.
  EXPECT_THAT(workspaces_taken(), ElementsAre(Gt(kBlockAlignment)));
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

TEST_F(CudaKernels, programs_lowered_under_other_rules_are_refused) {
  build_.emit_one("linear", "fc", {input("x", {2, 3}), input("w", {4, 3}), input("b", {4})});
  PersistentLayouts layouts;
  const Program dense = lower(program_, "dense", layouts);
  EXPECT_THAT([&] { device_->compile(dense); },
              ThrowsMessage<InputError>(HasSubstr("lowered under 'dense'")));
}

}  // namespace
}  // namespace headroom
