// GPU memory that is not just a fixed capacity: the driver may have less of it than promised, and
// it gives pages in units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/runner/run_cell.h"

namespace headroom::cuda_memory_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kOthersTake = "HEADROOM_SIMULATED_GPU_OTHERS_TAKE";

const DeviceKind& cuda() { return Registry<DeviceKind>::instance().find("cuda"); }

std::unique_ptr<Allocator> allocator_of(Device& device, const std::string& spec) {
  return make_allocator(Spec::parse_composition(spec), device.memory());
}

class CudaMemoryThatOthersUse : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (cuda_module().module == nullptr || !cuda_module().module->simulated)
      GTEST_SKIP() << "not on a simulated GPU, whose memory others can be told to take";
    device_ = cuda().create(Spec::parse("cuda(capacity=1GiB)"));
    allocator_ = allocator_of(*device_, GetParam());
  }
  void TearDown() override { unsetenv(kOthersTake); }

  // Another program takes all free memory except `left`.
  void leave(Bytes left) const {
    setenv(kOthersTake, std::to_string(device_->usage()->free - left).c_str(), 1);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> allocator_;
};

TEST_P(CudaMemoryThatOthersUse, is_given_back_and_asked_for_again) {
  // Another stream can use this idle memory only after it has been returned to the device.
  allocator_->deallocate(allocator_->allocate(200 * kMiB, {.stream = 1}));
  leave(100 * kMiB);
  const Block block = allocator_->allocate(280 * kMiB, {});
  EXPECT_GE(device_->memory().counters().driver_refusals, 1U);
  EXPECT_THAT(device_->memory().driver_refusals(), HasSubstr("another program uses the device"));
  allocator_->deallocate(block);
}

TEST_P(CudaMemoryThatOthersUse, is_out_of_memory_until_they_leave) {
  leave(100 * kMiB);
  EXPECT_THROW(allocator_->allocate(250 * kMiB, {}), OutOfMemory);
  unsetenv(kOthersTake);
  const Block block = allocator_->allocate(250 * kMiB, {});
  allocator_->deallocate(block);
}

INSTANTIATE_TEST_SUITE_P(Of, CudaMemoryThatOthersUse,
                         ::testing::Values("caching", "expandable", "stitching", "bfc(growth=on)"));

// CUDA loads the code of kernels when they are first launched, into memory that no strategy holds.
class CudaMemoryOfKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_module().module == nullptr || !cuda_module().module->simulated)
      GTEST_SKIP() << "not on a simulated GPU, which can be told what its kernels take";
    cuda().let_go();
  }
  void TearDown() override {
    unsetenv(kKernelsTake);
    cuda().let_go();
  }
  static void kernels_take(Bytes bytes) { setenv(kKernelsTake, std::to_string(bytes).c_str(), 1); }

  static constexpr const char* kKernelsTake = "HEADROOM_SIMULATED_GPU_KERNELS_TAKE";
};

TEST_F(CudaMemoryOfKernels, is_the_devices_and_not_the_strategys) {
  kernels_take(300 * kMiB);
  const auto device = cuda().create(Spec::parse("cuda(capacity=64MiB)"));
  const Segment x = device->memory().allocate(4);
  const Bytes free = device->usage()->free, reserved = device->memory().reserved();
  Value value;
  value.bytes = 4;
  device->write(value, x.data, std::vector<std::byte>(4));
  EXPECT_EQ(free - device->usage()->free, 300 * kMiB);
  EXPECT_EQ(device->memory().reserved(), reserved);
  device->memory().free(x);
}

TEST_F(CudaMemoryOfKernels, that_is_not_there_ends_a_sample_as_out_of_memory) {
  kernels_take(cuda().create(Spec::parse("cuda(capacity=64MiB)"))->usage()->free);
  cuda().let_go();
  const Sample sample = run_cell({.workload = Spec::parse("bert(preset=tiny)"),
                                  .device = Spec::parse("cuda(capacity=512MiB)"),
                                  .rules = "cudnn",
                                  .allocator = Spec::parse("caching"),
                                  .warmup_steps = 1,
                                  .measured_steps = 1},
                                 7, "");
  EXPECT_EQ(sample.status, SampleStatus::oom) << sample.reason;
  EXPECT_THAT(sample.reason, HasSubstr("refused"));
}

class CudaMemoryOfAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda().unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
  }
};

TEST_F(CudaMemoryOfAGpu, is_what_fractions_are_of_unless_a_capacity_is_named) {
  const auto whole = cuda().create(Spec::parse("cuda"));
  EXPECT_EQ(whole->memory().total(), whole->usage()->total);
  EXPECT_LT(whole->memory().capacity(), whole->memory().total());
  const auto part = cuda().create(Spec::parse("cuda(capacity=64MiB)"));
  EXPECT_EQ(part->memory().total(), 64 * kMiB);
}

// The simulated GPU ends the program if its context is destroyed while it is in use.
TEST_F(CudaMemoryOfAGpu, stays_while_it_is_used_and_comes_again_after_it_was_let_go) {
  Value value;
  value.bytes = 4;
  const std::vector<std::byte> written(4, std::byte{42});
  for (int round = 0; round < 2; ++round) {
    const auto device = cuda().create(Spec::parse("cuda(capacity=64MiB)"));
    cuda().let_go();
    const Segment x = device->memory().allocate(4);
    device->write(value, x.data, written);
    std::vector<std::byte> found(4);
    device->read(value, x.data, found);
    EXPECT_EQ(found, written);
    device->memory().free(x);
    if (round == 0) cuda().let_go();
  }
  cuda().let_go();
}

}  // namespace
}  // namespace headroom::cuda_memory_test
