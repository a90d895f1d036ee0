// Promises of strategies to programs with several streams, tested for every registered example: a
// block served to one stream is never in use by another, unless the strategy leaves that to its
// caller. The streams are simulated: a stream finishes its work when the test says so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
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

// More memory than is ever needed: a strategy that runs out waits for all streams, which this test
// would not notice.
constexpr Bytes kStreamsCapacity = 4 * kGiB;
constexpr Bytes kMostRequested = 64 * kMiB;
constexpr int kStreams = 4;

// Records for every freed address which stream used it last and which streams have yet to finish
// their work on it. Independent of how a strategy decides.
class ShadowMap {
 public:
  void freed(const Block& block, std::set<StreamId> still_using) {
    forget(block.address, block.address + block.size);
    pieces_[block.address] = {block.address + block.size, block.stream, std::move(still_using)};
  }
  void finished(StreamId stream) {
    for (auto& [address, piece] : pieces_) piece.still_using.erase(stream);
  }
  // Why `block` must not be served to its stream now; "" when it may.
  std::string objection(const Block& block) const {
    auto at = pieces_.upper_bound(block.address);
    if (at != pieces_.begin()) --at;
    for (; at != pieces_.end() && at->first < block.address + block.size; ++at) {
      const Piece& piece = at->second;
      if (piece.end <= block.address) continue;
      if (piece.stream != block.stream)
        return fmt::format("stream {} got what stream {} freed", block.stream, piece.stream);
      for (const StreamId other : piece.still_using)
        if (other != block.stream)
          return fmt::format("stream {} got what stream {} still uses", block.stream, other);
    }
    return "";
  }
  void served(const Block& block) { forget(block.address, block.address + block.size); }

 private:
  struct Piece {
    Address end = 0;
    StreamId stream = 0;
    std::set<StreamId> still_using;
  };

  void forget(Address begin, Address end) {
    auto at = pieces_.lower_bound(begin);
    if (at != pieces_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != pieces_.end() && at->first < end) {
      const auto [start, piece] = *at;
      at = pieces_.erase(at);
      if (start < begin) pieces_[start] = {begin, piece.stream, piece.still_using};
      if (end < piece.end) pieces_[end] = {piece.end, piece.stream, piece.still_using};
    }
  }

  std::map<Address, Piece> pieces_;
};

class Streams : public ::testing::TestWithParam<std::string> {
 protected:
  Streams() {
    device_->memory().record_into(&recorder_);
    recorder_.trace().header.capacity_bytes = kStreamsCapacity;
  }
  ~Streams() override { device_->memory().record_into(nullptr); }

  bool keeps_streams_apart() const {
    const Spec whole = Spec::parse_composition(GetParam());
    return Registry<AllocatorStrategy>::instance()
        .find(whole.innermost().name())
        .keeps_streams_apart;
  }
  Block take(Bytes bytes, StreamId stream) {
    return allocator_.allocate(bytes, {.name = "generator.1", .stream = stream});
  }

  TraceRecorder recorder_{1 << 14};
  std::unique_ptr<Device> device_ =
      make_device(Spec("meta", {{"capacity", std::to_string(kStreamsCapacity)}}));
  std::unique_ptr<Allocator> strategy_ =
      make_allocator(Spec::parse_composition(GetParam()), device_->memory());
  RecordingAllocator allocator_{*strategy_, recorder_};
};

INSTANTIATE_TEST_SUITE_P(Every, Streams, ::testing::ValuesIn(allocator_examples()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Streams, write_their_numbers_into_the_trace) {
  const Block block = take(1000, 3);
  allocator_.deallocate(block);
  std::vector<int> streams;
  for (const TraceEvent& event : recorder_.trace().events)
    if (event.kind == EventKind::alloc || event.kind == EventKind::free)
      streams.push_back(event.stream);
  EXPECT_EQ(streams, (std::vector<int>{3, 3}));
}

TEST_P(Streams, may_free_what_another_one_was_served) {
  const Block first = take(1000, 1);
  const Block second = take(3 * kMiB, 2);
  allocator_.deallocate(second);
  allocator_.deallocate(first);
  EXPECT_EQ(allocator_.statistics().live_blocks, 0u);
  EXPECT_EQ(allocator_.statistics().allocated, 0u);
}

TEST_P(Streams, refuse_uses_of_and_frees_of_what_waits_for_one) {
  const Block block = take(1000, 0);
  allocator_.record_stream(block, 1);
  allocator_.record_stream(block, 1);  // known already
  allocator_.deallocate(block);
  const AllocatorStatistics before = allocator_.statistics();
  EXPECT_THROW(allocator_.deallocate(block), Error);
  EXPECT_EQ(allocator_.statistics().live_blocks, before.live_blocks);
  EXPECT_EQ(allocator_.statistics().pending, before.pending);
}

// Compositions are included: their adaptors must pass on what they are told.
TEST_P(Streams, are_kept_apart_under_random_requests_where_the_strategy_says_so) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  struct Live {
    Block block;
    std::set<StreamId> used_by;
  };
  std::vector<Live> live;
  ShadowMap shadow;
  Bytes requested = 0;
  const auto free = [&](std::size_t index) {
    const Live gone = live[index];
    live[index] = live.back();
    live.pop_back();
    requested -= gone.block.requested;
    shadow.freed(gone.block, gone.used_by);
    allocator_.deallocate(gone.block);
  };
  for (int i = 0; i < 3000; ++i) {
    const auto stream = static_cast<StreamId>(random() % kStreams);
    const auto choice = random() % 16;
    if (choice < 7 && requested < kMostRequested) {
      const double exponent = std::uniform_real_distribution<double>(6, 23)(random);
      const auto bytes = static_cast<Bytes>(std::exp2(exponent));
      try {
        const Block block = take(bytes, stream);
        if (keeps_streams_apart()) {
          ASSERT_EQ(shadow.objection(block), "") << "request " << i;
        }
        shadow.served(block);
        live.push_back({block, {}});
        requested += bytes;
      } catch (const OutOfMemory&) {
        if (!live.empty()) free(0);
      }
    } else if (choice < 9 && !live.empty()) {
      Live& used = live[random() % live.size()];
      allocator_.record_stream(used.block, stream);
      if (stream != used.block.stream) used.used_by.insert(stream);
    } else if (choice < 10) {
      allocator_.stream_synchronized(stream);
      shadow.finished(stream);
    } else if (!live.empty()) {
      free(random() % live.size());
    }
    const AllocatorStatistics now = allocator_.statistics();
    ASSERT_EQ(now.requested, requested);
    ASSERT_EQ(now.live_blocks, live.size());
    ASSERT_EQ(now.reserved, device_->memory().reserved());
    ASSERT_LE(now.allocated + now.pending + now.largest_free, now.reserved);
  }
  while (!live.empty()) free(live.size() - 1);
  allocator_.synchronized();
  take(1, 0);  // the next request sees the freed memory
  EXPECT_EQ(allocator_.statistics().pending, 0u);
  EXPECT_THAT(violations(recorder_.trace()), IsEmpty());
}

}  // namespace
}  // namespace headroom
