// The device as the program sees it: names, reasons and arguments on every machine, memory only on
// one with a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/program/lowering/lowering.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const DeviceKind& cuda() { return Registry<DeviceKind>::instance().find("cuda"); }
std::unique_ptr<Device> make(const char* spec) { return cuda().create(Spec::parse(spec)); }

// Only the lowering rules of the host make such an op.
Program without_kernel() {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {2, 3, 4, 4}, DType::f32);
  const ValueId c = build.input("c", {3}, DType::f32);
  program.results =
      build.emit("batch_norm_add_relu_backward", "act", {x, x, c, c, c, x}, {{"epsilon", 1e-5}});
  return program;
}

TEST(Cuda, is_listed_with_its_default_rules) {
  EXPECT_EQ(cuda().default_rules, "cudnn");
  EXPECT_TRUE(Registry<LoweringRules>::instance().contains("cudnn"));
}

TEST(Cuda, refuses_an_unknown_parameter_and_offers_the_known_one) {
  EXPECT_THAT([] { make("cuda(capcity=1GiB)"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'capacity'?")));
}

TEST(Cuda, refuses_a_capacity_that_is_no_number_of_bytes) {
  EXPECT_THAT([] { make("cuda(capacity=lots)"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("capacity"), HasSubstr("'lots'"))));
}

TEST(Cuda, refuses_a_capacity_of_nothing) {
  EXPECT_THAT([] { make("cuda(capacity=0)"); },
              ThrowsMessage<InputError>(HasSubstr("a capacity of 0 holds nothing")));
}

TEST(Cuda, refuses_a_parameter_that_its_rules_do_not_have) {
  PersistentLayouts layouts;
  EXPECT_THAT([&] { lower(without_kernel(), "cudnn(workspace=1GiB)", layouts); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("unknown parameter of cudnn"), HasSubstr("workspace_limit"))));
  if (cuda_module().module == nullptr) GTEST_SKIP() << cuda_module().problem;
  EXPECT_THAT([&] { lower(without_kernel(), "cudnn(workspace_limit=lots)", layouts); },
              ThrowsMessage<InputError>(HasSubstr("'lots'")));
}

TEST(Cuda, says_what_a_machine_without_a_gpu_would_need) {
  const std::string reason = cuda().unavailable();
  if (reason.empty()) GTEST_SKIP() << "there is a CUDA GPU here";
  EXPECT_THAT(reason, HasSubstr("needs"));
  EXPECT_THAT([] { make("cuda(capacity=1GiB)"); }, ThrowsMessage<InputError>(HasSubstr(reason)));
}

TEST(Cuda, cannot_lower_without_a_gpu) {
  const std::string reason = cuda().unavailable();
  if (reason.empty()) GTEST_SKIP() << "there is a CUDA GPU here";
  PersistentLayouts layouts;
  Program nothing{.name = "test"};
  EXPECT_THAT([&] { lower(nothing, "cudnn", layouts); },
              ThrowsMessage<InputError>(HasSubstr(reason)));
}

TEST(Cuda, names_the_kind_of_op_it_has_no_kernel_for) {
  if (cuda_module().module == nullptr) GTEST_SKIP() << cuda_module().problem;
  PersistentLayouts layouts;
  EXPECT_THAT([&] { lower(without_kernel(), "cudnn", layouts); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("no kernel for ops of kind 'batch_norm_add_relu_backward'"),
                        HasSubstr("'act'"), HasSubstr("convolution"))));
}

class CudaMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda().unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
  }
};

TEST_F(CudaMemory, takes_what_is_free_when_no_capacity_is_named) {
  const auto device = make("cuda");
  EXPECT_GT(device->memory().capacity(), 0u);
  EXPECT_EQ(device->memory().capacity() % device->memory().granule(), 0u);
}

TEST_F(CudaMemory, refuses_more_than_is_free) {
  EXPECT_THAT([] { make("cuda(capacity=1000TiB)"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("the GPU has"), HasSubstr("free"))));
}

TEST_F(CudaMemory, refuses_less_than_a_page) {
  EXPECT_THAT([] { make("cuda(capacity=1KiB)"); },
              ThrowsMessage<InputError>(HasSubstr("at least that")));
}

TEST_F(CudaMemory, keeps_to_its_capacity) {
  const auto device = make("cuda(capacity=64MiB)");
  const Segment whole = device->memory().allocate(64 * kMiB);
  EXPECT_NE(whole.data, nullptr);
  EXPECT_THROW(device->memory().allocate(1), OutOfMemory);
  device->memory().free(whole);
  EXPECT_EQ(device->memory().reserved(), 0u);
}

}  // namespace
}  // namespace headroom
