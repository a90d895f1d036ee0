// Every allocator strategy over GPU memory: blocks keep their contents, and decisions equal those
// made on meta. A new strategy is included by being registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/trace/validator.h"
#include "tests/test_name.h"

namespace headroom {
namespace {

using ::testing::IsEmpty;

constexpr Bytes kCapacity = 64 * kMiB;
constexpr Bytes kLargest = 8 * kMiB;
constexpr std::size_t kLive = 20;

std::string why_no_gpu() { return Registry<DeviceKind>::instance().find("cuda").unavailable(); }

std::unique_ptr<Device> make(const char* name, Bytes granule) {
  Spec spec(name, {{"capacity", std::to_string(kCapacity)}});
  if (granule != 0)
    spec =
        Spec(name, {{"capacity", std::to_string(kCapacity)}, {"granule", std::to_string(granule)}});
  return make_device(spec);
}

// Contents that differ between blocks, between pages of 4 KiB, and between pages some MiB apart.
std::vector<unsigned char> tagged(Bytes bytes, std::uint32_t tag) {
  constexpr Bytes kPiece = 4 * kKiB;
  std::vector<unsigned char> contents(bytes);
  for (Bytes at = 0; at < bytes; at += kPiece)
    std::memset(contents.data() + at, static_cast<int>((tag + at / kPiece % 251) % 256),
                std::min(kPiece, bytes - at));
  return contents;
}

// One strategy on one device that serves random requests and is recorded.
class Session {
 public:
  Session(Device& device, const std::string& spec) : device_(device) {
    recorder_.trace().header.capacity_bytes = device.memory().capacity();
    device.memory().record_into(&recorder_);
    strategy_ = make_allocator(Spec::parse_composition(spec), device.memory());
    recording_ = std::make_unique<RecordingAllocator>(*strategy_, recorder_);
  }

  void run(std::mt19937 random, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (live_.size() == kLive) {
        std::swap(live_[random() % kLive], live_.back());
        give_back();
      }
      const Bytes most = kLargest >> random() % 8;
      take(1 + random() % most, random());
      if (round % 50 == 49) recording_->synchronized();
    }
    while (!live_.empty()) give_back();
  }

  const Trace& trace() const { return recorder_.trace(); }

 private:
  struct Held {
    Block block;
    Value value;
    std::vector<unsigned char> contents;
  };

  // An out-of-memory error is also a decision, and is recorded.
  void take(Bytes bytes, std::uint32_t tag) {
    const char* module = ++requests_ % 2 == 0 ? "generator.1" : "discriminator.1";
    Held held;
    try {
      held.block = recording_->allocate(bytes, {.name = module});
    } catch (const OutOfMemory&) {
      return;
    }
    if (device_.computes()) {
      held.contents = tagged(bytes, tag);
      held.value.bytes = bytes;
      device_.write(held.value, held.block.data, std::as_bytes(std::span(held.contents)));
    }
    live_.push_back(std::move(held));
  }

  void give_back() {
    const Held& held = live_.back();
    if (device_.computes()) {
      std::vector<unsigned char> found(held.contents.size());
      device_.read(held.value, held.block.data, std::as_writable_bytes(std::span(found)));
      EXPECT_TRUE(found == held.contents) << "a block of " << held.block.requested << " bytes";
    }
    recording_->deallocate(held.block);
    live_.pop_back();
  }

  Device& device_;
  TraceRecorder recorder_{1 << 14};
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> recording_;
  std::vector<Held> live_;
  std::uint64_t requests_ = 0;
};

class CudaStrategy : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Every, CudaStrategy, ::testing::ValuesIn(allocator_examples()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(CudaStrategy, keeps_bytes_and_decides_as_on_meta) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const auto gpu = make("cuda", 0);
  const auto meta = make("meta", gpu->memory().granule());
  try {
    Session on_gpu(*gpu, GetParam());
    Session on_meta(*meta, GetParam());
    on_gpu.run(std::mt19937(seed), 300);
    on_meta.run(std::mt19937(seed), 300);
    EXPECT_THAT(violations(on_gpu.trace()), IsEmpty());
    // async uses the driver's own pool on a GPU and a model of it elsewhere.
    if (Spec::parse_composition(GetParam()).innermost().name() != "async") {
      EXPECT_EQ(first_difference(on_gpu.trace(), on_meta.trace()), "");
    }
  } catch (const NotSupported& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(gpu->memory().reserved(), 0u) << "the strategy gave not everything back";
}

}  // namespace
}  // namespace headroom
