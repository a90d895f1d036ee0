// Promises of every allocator strategy, tested for every registered example on host and meta. A new
// strategy is included by being registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/host/host_memory.h"
#include "harness/memory/recording_allocator.h"
#include "harness/trace/ledger.h"
#include "harness/trace/validator.h"
#include "tests/test_name.h"

namespace headroom {
namespace {

using ::testing::IsEmpty;

constexpr Bytes kCapacity = 64 * kMiB;

// Each byte equals the one before it, and the first is `byte`.
bool holds_only(std::byte byte, const Block& block) {
  return block.data[0] == byte && std::memcmp(block.data, block.data + 1, block.requested - 1) == 0;
}

// One strategy over one kind of memory, with every event recorded.
class Bench {
 public:
  Bench(const std::string& spec, bool on_host) {
    if (on_host) {
      host_ = std::make_unique<HostMemory>(kCapacity);
      memory_ = host_.get();
    } else {
      meta_ = make_device(Spec("meta", {{"capacity", std::to_string(kCapacity)}}));
      memory_ = &meta_->memory();
    }
    recorder_.trace().header.capacity_bytes = memory_->capacity();
    memory_->record_into(&recorder_);
    strategy_ = make_allocator(Spec::parse_composition(spec), *memory_);
    recording_ = std::make_unique<RecordingAllocator>(*strategy_, recorder_);
  }

  Allocator& allocator() { return *recording_; }
  // Two modules request blocks in turn.
  Block take(Bytes bytes) {
    const char* module = ++requests_ % 2 == 0 ? "generator.1" : "discriminator.1";
    return recording_->allocate(bytes, {.name = module});
  }
  DeviceMemory& memory() { return *memory_; }
  const Trace& trace() const { return recorder_.trace(); }
  void destroy_strategy() { strategy_.reset(); }

 private:
  TraceRecorder recorder_{1 << 14};
  std::unique_ptr<HostMemory> host_;
  std::unique_ptr<Device> meta_;
  DeviceMemory* memory_ = nullptr;
  std::unique_ptr<Allocator> strategy_;
  std::unique_ptr<RecordingAllocator> recording_;
  std::uint64_t requests_ = 0;
};

using Case = std::tuple<std::string, std::string>;  // example, "host" or "meta"

class Strategy : public ::testing::TestWithParam<Case> {
 protected:
  bool on_host() const { return std::get<1>(GetParam()) == "host"; }
  Allocator& allocator() { return bench_.allocator(); }
  Block take(Bytes bytes) { return bench_.take(bytes); }
  void give(const Block& block) { allocator().deallocate(block); }

  Bench bench_{std::get<0>(GetParam()), on_host()};
};

INSTANTIATE_TEST_SUITE_P(Every, Strategy,
                         ::testing::Combine(::testing::ValuesIn(allocator_examples()),
                                            ::testing::Values("host", "meta")),
                         [](const auto& info) {
                           return test_name(std::get<0>(info.param) + "_on_" +
                                            std::get<1>(info.param));
                         });

TEST_P(Strategy, serves_blocks_that_hold_what_is_written_into_them) {
  std::vector<Block> blocks;
  for (Bytes bytes = 1; bytes < 1024; ++bytes) blocks.push_back(take(bytes));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(blocks[i].data != nullptr, on_host());
    if (on_host()) std::memset(blocks[i].data, static_cast<int>(i % 251), blocks[i].requested);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto expected = static_cast<std::byte>(i % 251);
    if (on_host()) {
      ASSERT_TRUE(holds_only(expected, blocks[i]));
    }
    give(blocks[i]);
  }
  EXPECT_THAT(violations(bench_.trace()), IsEmpty());
}

TEST_P(Strategy, aligns_every_block_to_256_bytes) {
  for (const Bytes bytes : {1u, 255u, 256u, 257u, 5000u, 65'537u, 1u << 20, 3'000'001u}) {
    const Block block = take(bytes);
    EXPECT_EQ(block.address % kBlockAlignment, 0u) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % kBlockAlignment, 0u) << bytes;
    EXPECT_EQ(block.requested, bytes);
    EXPECT_GE(block.size, bytes);
  }
}

TEST_P(Strategy, answers_zero_bytes_with_a_null_block_that_costs_nothing) {
  const Block block = take(0);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.size, 0u);
  EXPECT_EQ(allocator().statistics().live_blocks, 0u);
  EXPECT_EQ(bench_.memory().reserved(), 0u);
  give(block);
}

TEST_P(Strategy, still_serves_what_fits_after_it_ran_out) {
  const Block held = take(kMiB);
  const AllocatorStatistics before = allocator().statistics();
  for (const Bytes impossible : {kCapacity, kCapacity + 1, Bytes{1} << 40, ~Bytes{0}}) {
    EXPECT_THROW(take(impossible), OutOfMemory) << impossible;
  }
  EXPECT_EQ(allocator().statistics().requested, before.requested);
  EXPECT_EQ(allocator().statistics().allocated, before.allocated);
  EXPECT_EQ(allocator().statistics().live_blocks, 1u);
  give(take(8 * kMiB));
  give(held);
  EXPECT_THAT(violations(bench_.trace()), IsEmpty());
}

TEST_P(Strategy, reports_where_the_bytes_were_when_it_ran_out) {
  const Block held = take(3 * kMiB);
  const AllocatorStatistics before = allocator().statistics();
  try {
    take(kCapacity);
    FAIL() << "more than the capacity was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().requested_bytes, kCapacity);
    EXPECT_EQ(error.report().capacity_bytes, kCapacity);
    EXPECT_EQ(error.report().allocated_bytes, before.allocated);
    EXPECT_EQ(error.report().reserved_bytes, allocator().statistics().reserved);
    EXPECT_EQ(error.report().largest_free_bytes, allocator().statistics().largest_free);
    EXPECT_FALSE(error.report().allocator.empty());
  }
  give(held);
}

TEST_P(Strategy, ends_with_out_of_memory_and_not_earlier_than_its_budget) {
  std::vector<Block> blocks;
  try {
    for (;;) blocks.push_back(take(kMiB));
  } catch (const OutOfMemory&) {
  }
  // Every example may use at least half of the device; growth may leave one region unused.
  EXPECT_GE(blocks.size(), kCapacity / kMiB / 2 - 2);
  EXPECT_LE(bench_.memory().reserved(), kCapacity);
  for (const Block& block : blocks) give(block);
  EXPECT_EQ(allocator().statistics().live_blocks, 0u);
  give(take(kMiB));
}

TEST_P(Strategy, holds_no_more_after_a_thousand_equal_rounds_than_after_two) {
  const auto round = [&] {
    std::vector<Block> blocks;
    for (const Bytes bytes : {4096u, 100u, 3u << 20, 70'000u, 256u, 1u << 20, 12'345u})
      blocks.push_back(take(bytes));
    for (const std::size_t i : {2u, 0u, 5u, 6u, 1u, 4u, 3u}) give(blocks[i]);
  };
  round();
  round();
  const Bytes reserved = bench_.memory().reserved();
  for (int i = 0; i < (on_host() ? 100 : 1024); ++i) round();
  EXPECT_EQ(bench_.memory().reserved(), reserved);
  EXPECT_EQ(allocator().statistics().allocated, 0u);
}

TEST_P(Strategy, is_engaged_once_it_has_served_ordinary_requests) {
  take(1000);
  take(2 * kMiB);
  allocator().synchronized();
  EXPECT_EQ(allocator().why_not_engaged(), std::nullopt);
  const Spec whole = Spec::parse_composition(std::get<0>(GetParam()));
  const Spec& spec = whole.innermost();
  const auto& strategies = Registry<AllocatorStrategy>::instance();
  ASSERT_TRUE(strategies.contains(spec.name()));
  const auto& shows = strategies.find(spec.name()).why_not_engaged;
  EXPECT_EQ(shows ? shows(spec, bench_.trace()) : std::nullopt, std::nullopt);
}

TEST_P(Strategy, refuses_a_block_that_is_not_live) {
  const Block block = take(1000);
  const Block other = take(1000);
  give(block);
  const AllocatorStatistics before = allocator().statistics();
  EXPECT_THROW(give(block), Error);
  Block strange = other;
  strange.address += kBlockAlignment;
  EXPECT_THROW(give(strange), Error);
  EXPECT_EQ(allocator().statistics().requested, before.requested);
  EXPECT_EQ(allocator().statistics().allocated, before.allocated);
  EXPECT_EQ(allocator().statistics().live_blocks, before.live_blocks);
  give(other);
}

TEST_P(Strategy, gives_up_where_the_device_gives_nothing_and_serves_once_it_does) {
  const Segment taken = bench_.memory().allocate(kCapacity);
  for (const Bytes bytes : {Bytes{1}, kMiB, 20 * kMiB}) EXPECT_THROW(take(bytes), OutOfMemory);
  EXPECT_EQ(allocator().statistics().live_blocks, 0u);
  bench_.memory().free(taken);
  give(take(kMiB));
}

TEST_P(Strategy, gives_every_segment_back_when_it_ends) {
  take(1000);
  give(take(5 * kMiB));
  take(3 * kMiB);
  bench_.destroy_strategy();
  EXPECT_EQ(bench_.memory().reserved(), 0u);
  EXPECT_EQ(bench_.memory().counters().segment_frees,
            bench_.memory().counters().segment_allocations);
}

// Sends random requests and checks them against a model that knows every live block; the
// independent validator and the ledger check the recorded trace.
class RandomRequests {
 public:
  RandomRequests(Bench& bench, std::uint64_t seed) : bench_(bench), random_(seed) {}

  void run(int count) {
    for (int i = 0; i < count; ++i) {
      // Three in four requests allocate until half of the memory is in use; after that one in two
      // does.
      const bool take = live_.empty() || random_() % 4 < (allocated_ < kCapacity / 2 ? 3u : 1u);
      if (take)
        allocate();
      else
        free(random_() % live_.size());
    }
  }
  void free_all() {
    while (!live_.empty()) free(live_.size() - 1);
  }

  Bytes requested() const { return requested_; }
  Bytes allocated() const { return allocated_; }
  std::size_t live() const { return live_.size(); }

 private:
  void allocate() {
    const double exponent = std::uniform_real_distribution<double>(0, 21)(random_);
    const auto bytes = static_cast<Bytes>(std::exp2(exponent));
    try {
      const Block block = bench_.take(bytes);
      if (block.data != nullptr) std::memset(block.data, tag(block), bytes);
      requested_ += bytes;
      allocated_ += block.size;
      live_.push_back(block);
    } catch (const OutOfMemory&) {
      if (!live_.empty()) free(0);
    }
  }

  void free(std::size_t index) {
    const Block block = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    if (block.data != nullptr) {
      const auto expected = static_cast<std::byte>(tag(block));
      ASSERT_TRUE(holds_only(expected, block)) << "block " << block.id << " was written by another";
    }
    requested_ -= block.requested;
    allocated_ -= block.size;
    bench_.allocator().deallocate(block);
  }

  static int tag(const Block& block) { return static_cast<int>(block.id % 255 + 1); }

  Bench& bench_;
  std::mt19937_64 random_;
  std::vector<Block> live_;
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
};

TEST_P(Strategy, survives_random_requests_with_exact_statistics_and_a_sound_trace) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomRequests requests(bench_, seed);
  for (int part = 0; part < 5; ++part) {
    requests.run(on_host() ? 200 : 2000);
    const AllocatorStatistics statistics = allocator().statistics();
    ASSERT_EQ(statistics.requested, requests.requested());
    ASSERT_EQ(statistics.allocated, requests.allocated());
    ASSERT_EQ(statistics.live_blocks, requests.live());
    ASSERT_EQ(statistics.reserved, bench_.memory().reserved());
    ASSERT_LE(statistics.largest_free, statistics.reserved - statistics.allocated);
  }
  requests.free_all();
  EXPECT_THAT(violations(bench_.trace()), IsEmpty());
  const Ledger ledger = make_ledger(bench_.trace(), 0);
  EXPECT_LE(ledger.allocated.overall_peak, ledger.reserved.overall_peak);
}

class Determinism : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Every, Determinism, ::testing::ValuesIn(allocator_examples()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Determinism, gives_the_same_trace_on_host_and_on_meta) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Bench host(GetParam(), true);
  Bench meta(GetParam(), false);
  RandomRequests(host, seed).run(800);
  RandomRequests(meta, seed).run(800);
  ASSERT_GT(host.trace().events.size(), 800u);
  EXPECT_EQ(first_difference(host.trace(), meta.trace()), "");
}

// These accesses are visible only in a build with AddressSanitizer.
class Poison : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#if !defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "needs a build with AddressSanitizer (meson setup -Db_sanitize=address)";
#endif
  }
  Bench bench_{GetParam(), true};
};
using PoisonDeathTest = Poison;

INSTANTIATE_TEST_SUITE_P(Every, PoisonDeathTest, ::testing::ValuesIn(allocator_examples()),
                         [](const auto& info) { return test_name(info.param); });

void write_byte(std::byte* data) { *const_cast<volatile std::byte*>(data) = std::byte{1}; }

TEST_P(PoisonDeathTest, catches_a_write_behind_the_bytes_that_were_asked_for) {
  const Block block = bench_.allocator().allocate(1000, {});
  write_byte(block.data + 999);
  EXPECT_DEATH(write_byte(block.data + 1000), "AddressSanitizer");
}

TEST_P(PoisonDeathTest, catches_a_write_into_memory_nobody_has) {
  const Block block = bench_.allocator().allocate(1000, {});
  EXPECT_DEATH(write_byte(block.data + block.size), "AddressSanitizer");
}

TEST_P(PoisonDeathTest, catches_a_write_into_a_freed_block) {
  const Block block = bench_.allocator().allocate(100'000, {});
  bench_.allocator().deallocate(block);
  EXPECT_DEATH(write_byte(block.data), "AddressSanitizer");
}

}  // namespace
}  // namespace headroom
