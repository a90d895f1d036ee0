// Memory that a queued kernel uses must not be overwritten, moved or released before the kernel has
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/offload.h"
#include "tests/unit/reference/reference.h"

namespace headroom {
namespace {

using ::testing::Eq;

constexpr std::int64_t kCount = 1 << 16;
using Numbers = std::vector<float>;

class CudaOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    const DeviceKind& cuda = Registry<DeviceKind>::instance().find("cuda");
    if (const std::string reason = cuda.unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
    device_ = cuda.create(Spec::parse("cuda(capacity=256MiB)"));
    std::generate(first_.begin(), first_.end(), [&] { return number_(random_); });
    std::generate(second_.begin(), second_.end(), [&] { return number_(random_); });
  }

  DeviceMemory& memory() { return device_->memory(); }

  void write(std::byte* data, const Numbers& numbers) {
    device_->write(value(), data, std::as_bytes(std::span(numbers)));
  }
  Numbers read(const std::byte* data) {
    Numbers numbers(kCount);
    device_->read(value(), data, std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  // Compiles a chain of ops of these kinds, each reading the result of the one before.
  std::unique_ptr<CompiledProgram> compile(const std::vector<const char*>& kinds) {
    ProgramBuilder build(program_);
    ValueId last = build.input("x", {kCount}, DType::f32);
    for (const char* kind : kinds) last = build.emit_one(kind, kind, {last});
    program_.results = {last};
    PersistentLayouts layouts;
    lowered_ = lower(program_, "cudnn", layouts);
    return device_->compile(lowered_);
  }

  static void run(CompiledProgram& compiled, std::size_t op, std::byte* from, std::byte* to) {
    compiled.run(op, {.inputs = {&from, 1}, .outputs = {&to, 1}});
  }

  static Value value() {
    Value value;
    value.name = "numbers";
    value.shape = {kCount};
    value.dtype = DType::f32;
    value.bytes = kCount * sizeof(float);
    return value;
  }

  static Numbers positive(Numbers numbers) {
    for (float& number : numbers) number = std::max(number, 0.0F);
    return numbers;
  }

  std::mt19937_64 random_{testing::test_seed()};
  std::normal_distribution<float> number_;
  Numbers first_ = Numbers(kCount), second_ = Numbers(kCount);
  std::unique_ptr<Device> device_;
  Program program_{.name = "test"};
  Program lowered_;
};

TEST_F(CudaOrder, lets_a_kernel_read_before_what_it_reads_is_staged_anew) {
  const auto relu = compile({"relu"});
  const auto host = device_->make_host_memory();
  const Segment x = memory().allocate(value().bytes), y = memory().allocate(value().bytes);
  const Segment staged = host->allocate(value().bytes);
  std::ranges::copy(std::as_bytes(std::span(second_)), staged.data);
  write(x.data, first_);
  run(*relu, 0, x.data, y.data);
  device_->stage(value(), x.data, {staged.data, value().bytes});
  device_->finish_staging();
  EXPECT_THAT(read(y.data), Eq(positive(first_)));
  EXPECT_THAT(read(x.data), Eq(second_));
  host->free(staged);
}

TEST_F(CudaOrder, has_copied_what_it_writes_when_it_returns) {
  const auto host = device_->make_host_memory();
  const Segment x = memory().allocate(value().bytes);
  const Segment from = host->allocate(value().bytes);
  std::ranges::copy(std::as_bytes(std::span(first_)), from.data);
  device_->write(value(), x.data, {from.data, value().bytes});
  std::ranges::copy(std::as_bytes(std::span(second_)), from.data);
  EXPECT_THAT(read(x.data), Eq(first_));
  host->free(from);
}

TEST_F(CudaOrder, keeps_memory_of_the_host_until_it_has_been_copied) {
  const auto host = device_->make_host_memory();
  const Segment x = memory().allocate(value().bytes);
  const Segment staged = host->allocate(value().bytes);
  std::ranges::copy(std::as_bytes(std::span(first_)), staged.data);
  device_->stage(value(), x.data, {staged.data, value().bytes});
  host->free(staged);
  device_->finish_staging();
  EXPECT_THAT(read(x.data), Eq(first_));
}

TEST_F(CudaOrder, keeps_pages_until_the_kernels_that_use_them_have_run) {
  if (!memory().has_virtual_memory()) GTEST_SKIP() << "this GPU has no virtual memory";
  const auto relu = compile({"relu"});
  const Reservation pages = memory().reserve(memory().page());
  memory().map(pages, 0, memory().page());
  const Segment y = memory().allocate(value().bytes);
  write(pages.data, first_);
  run(*relu, 0, pages.data, y.data);
  memory().unmap(pages, 0, memory().page());
  EXPECT_THAT(read(y.data), Eq(positive(first_)));
  memory().unreserve(pages);
}

TEST_F(CudaOrder, moves_pages_together_with_what_queued_kernels_write_there) {
  if (!memory().has_virtual_memory()) GTEST_SKIP() << "this GPU has no virtual memory";
  const auto relu = compile({"relu"});
  const Reservation from = memory().reserve(memory().page()),
                    to = memory().reserve(memory().page());
  memory().map(from, 0, memory().page());
  const Segment x = memory().allocate(value().bytes);
  write(x.data, first_);
  run(*relu, 0, x.data, from.data);
  memory().move(from, 0, to, 0, memory().page());
  EXPECT_THAT(read(to.data), Eq(positive(first_)));
  memory().unmap(to, 0, memory().page());
  memory().unreserve(to);
  memory().unreserve(from);
}

// Two values use the same host memory, one after the other.
TEST_F(CudaOrder, copies_out_only_after_what_lay_there_was_copied_back) {
  const auto compiled = compile({"copy_out", "copy_in", "relu"});
  const auto host = device_->make_host_memory();
  const Segment kept = host->allocate(value().bytes);
  const Segment x = memory().allocate(value().bytes), z = memory().allocate(value().bytes);
  const Segment back = memory().allocate(value().bytes), y = memory().allocate(value().bytes);
  write(x.data, first_);
  write(z.data, second_);
  run(*compiled, 0, x.data, kept.data);
  run(*compiled, 1, kept.data, back.data);
  run(*compiled, 0, z.data, kept.data);
  run(*compiled, 2, back.data, y.data);
  EXPECT_THAT(read(y.data), Eq(positive(first_)));
  host->free(kept);
}

}  // namespace
}  // namespace headroom
