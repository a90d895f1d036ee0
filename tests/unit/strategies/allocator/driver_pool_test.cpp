// async on a device with stream-ordered pools: its accounting, tested with a fake driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "harness/base/error.h"
#include "harness/device/memory_share.h"
#include "harness/memory/recording_allocator.h"
#include "harness/trace/ledger.h"
#include "harness/trace/validator.h"

namespace headroom::driver_pool_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr Bytes kCapacity = 256 * kMiB;
constexpr Bytes kGrowth = 32 * kMiB;

// What a pool did; outlives the pool.
struct Account {
  StreamPoolOptions options;
  std::map<std::byte*, Bytes> live;
  Bytes used = 0;
  Bytes held = 0;
};

// Grows by 32 MiB and keeps its memory until it is trimmed.
class MadeUpPool final : public StreamPool {
 public:
  explicit MadeUpPool(Account& account) : account_(account) {}
  ~MadeUpPool() override { account_.held = 0; }
  std::byte* take(Bytes bytes) override {
    if (align_up(account_.used + bytes, kGrowth) > kCapacity) return nullptr;
    account_.used += bytes;
    account_.held = std::max(account_.held, align_up(account_.used, kGrowth));
    next_ += kGrowth;
    account_.live.emplace(reinterpret_cast<std::byte*>(next_), bytes);
    return reinterpret_cast<std::byte*>(next_);
  }
  void give(std::byte* data) override {
    account_.used -= account_.live.at(data);
    account_.live.erase(data);
  }
  void trim(Bytes keep) override {
    account_.held = std::min(account_.held, std::max(keep, align_up(account_.used, kGrowth)));
  }
  Bytes held() const override { return account_.held; }

 private:
  Account& account_;
  std::uintptr_t next_ = kGrowth;
};

class MadeUpGpu final : public DeviceMemory {
 public:
  MadeUpGpu() : DeviceMemory(kCapacity, 2 * kMiB) {}
  std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options) override {
    account.options = options;
    return std::make_unique<MadeUpPool>(account);
  }
  Account account;
};

std::unique_ptr<Allocator> make(const char* spec, DeviceMemory& memory) {
  return make_allocator(Spec::parse_composition(spec), memory);
}

TEST(AsyncOnADriversPool, passes_its_parameters_on) {
  MadeUpGpu gpu;
  make("async(release_threshold=1GiB,reuse=same_stream)", gpu);
  EXPECT_EQ(gpu.account.options.release_threshold, kGiB);
  EXPECT_EQ(gpu.account.options.reuse, StreamPoolOptions::Reuse::same_stream);
  make("async", gpu);
  EXPECT_EQ(gpu.account.options.release_threshold, 0u);
  EXPECT_EQ(gpu.account.options.reuse, StreamPoolOptions::Reuse::any_stream);
  EXPECT_THAT([&] { make("async(reuse=some_stream)", gpu); },
              ThrowsMessage<InputError>(HasSubstr("same_stream")));
}

TEST(AsyncOnADriversPool, counts_as_reserved_what_the_driver_holds) {
  MadeUpGpu gpu;
  const auto allocator = make("async", gpu);
  const Block block = allocator->allocate(kMiB, {});
  EXPECT_EQ(gpu.reserved(), kGrowth);
  allocator->deallocate(block);
  EXPECT_EQ(gpu.reserved(), kGrowth);
  allocator->trim();
  EXPECT_EQ(gpu.reserved(), 0u);
}

TEST(AsyncOnADriversPool, sees_what_the_driver_gave_back_at_the_end_of_a_step) {
  MadeUpGpu gpu;
  const auto allocator = make("async", gpu);
  allocator->deallocate(allocator->allocate(kMiB, {}));
  gpu.account.held = 0;  // the driver released memory by itself
  allocator->synchronized();
  EXPECT_EQ(gpu.reserved(), 0u);
}

TEST(AsyncOnADriversPool, keeps_exact_books_over_random_requests) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  MadeUpGpu gpu;
  TraceRecorder recorder(1 << 14);
  recorder.trace().header.capacity_bytes = kCapacity;
  gpu.record_into(&recorder);
  {
    const auto strategy = make("async", gpu);
    RecordingAllocator allocator(*strategy, recorder);
    std::vector<Block> live;
    for (int round = 0; round < 1000; ++round) {
      if (live.size() == 20) {
        std::swap(live[random() % live.size()], live.back());
        allocator.deallocate(live.back());
        live.pop_back();
      }
      try {
        live.push_back(allocator.allocate(1 + random() % (32 * kMiB), {}));
      } catch (const OutOfMemory& error) {
        EXPECT_EQ(error.report().reserved_bytes, gpu.account.held);
      }
      if (random() % 20 == 0) allocator.trim();
      ASSERT_EQ(gpu.reserved(), gpu.account.held);
      ASSERT_EQ(allocator.statistics().reserved, gpu.account.held);
      ASSERT_EQ(allocator.statistics().allocated, gpu.account.used);
    }
    for (const Block& block : live) allocator.deallocate(block);
  }
  EXPECT_TRUE(gpu.account.live.empty());
  EXPECT_EQ(gpu.reserved(), 0u);
  EXPECT_THAT(violations(recorder.trace()), IsEmpty());
  EXPECT_LE(make_ledger(recorder.trace(), 0).reserved.overall_peak, kCapacity);
}

TEST(AsyncOnADriversPool, gives_back_what_is_still_in_use_at_the_end) {
  MadeUpGpu gpu;
  { make("async", gpu)->allocate(kMiB, {}); }
  EXPECT_TRUE(gpu.account.live.empty());
  EXPECT_EQ(gpu.reserved(), 0u);
}

TEST(AsyncOnADriversPool, is_charged_to_the_share_it_stands_over) {
  MadeUpGpu gpu;
  MemoryShare share(gpu, kCapacity);
  const auto allocator = make("async", share);
  const Block block = allocator->allocate(kMiB, {});
  EXPECT_EQ(share.reserved(), kGrowth);
  EXPECT_EQ(gpu.reserved(), kGrowth);
  allocator->deallocate(block);
}

// A device without stream-ordered pools, like host and meta.
class SegmentsOnly final : public DeviceMemory {
 public:
  SegmentsOnly() : DeviceMemory(kCapacity, 2 * kMiB) {}
};

TEST(AsyncElsewhere, refuses_what_only_a_driver_can_do) {
  SegmentsOnly memory;
  EXPECT_THAT([&] { make("async(reuse=same_stream)", memory); },
              ThrowsMessage<NotSupported>(HasSubstr("only cuda has")));
}

}  // namespace
}  // namespace headroom::driver_pool_test
