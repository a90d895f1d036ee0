// binning: RMM's binning_memory_resource. A request of up to largest= takes a block of the smallest
// power of two from smallest= on that holds it; each size has its own blocks, allocated from the
// strategy behind blocks= at a time, served in the order in which they were freed, and never
// returned. Larger requests go to the strategy behind. Rules:
// include/rmm/mr/device/{binning,fixed_size}_memory_resource.hpp of rapidsai/rmm at 5d50a37;
// defaults as in its benchmarks. Cost: one queue operation per request, independent of the live
// blocks; memory: up to half of each block, and the largest number of blocks that each size ever
// needed.
//
// Differences: the first blocks of a size are allocated at its first request, not at construction;
// and a block freed by one stream is not served to another, whereas the original makes the other
// stream wait.
#include <fmt/format.h>

#include <bit>
#include <deque>
#include <map>
#include <vector>

#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"
#include "strategies/allocator/parts/stream_events.h"

namespace headroom {
namespace {

class Binning final : public ForwardingAllocator {
 public:
  Binning(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory),
        name_(spec.name()),
        smallest_(spec.bytes("smallest", 256 * kKiB)),
        largest_(spec.bytes("largest", 4 * kMiB)) {
    const std::int64_t blocks = spec.integer("blocks", 128);
    if (!std::has_single_bit(smallest_) || !std::has_single_bit(largest_) ||
        smallest_ < kBlockAlignment || smallest_ > largest_)
      throw InputError(
          "binning: smallest and largest must be powers of two from 256 on, as in "
          "binning(smallest=1KiB,largest=1MiB)|pool");
    if (blocks < 1 || static_cast<Bytes>(blocks) > memory.capacity() / largest_)
      throw InputError(
          fmt::format("binning: blocks={} must be at least 1, and so many of {} must be in the "
                      "device's {}",
                      blocks, format_bytes(largest_), format_bytes(memory.capacity())));
    blocks_at_a_time_ = static_cast<Bytes>(blocks);
  }

  ~Binning() override {
    for (const Block& chunk : chunks_) {
      unpoison(chunk.data, chunk.requested);
      inner().deallocate(chunk);
    }
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    if (events_.any_waits()) free_finished();
    const Block block = bytes > largest_ ? ask_behind(bytes, bytes, hint) : serve(bytes, hint);
    requested_ += bytes;
    allocated_ += block.size;
    ++live_;
    return block;
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (block.requested > largest_) {
      inner().deallocate(block);
    } else {
      Binned& binned = binned_of(block);
      poison(binned.data, block.size);
      if (events_.defer(block.handle)) {
        binned.requested = kPending;
        pending_ += block.size;
      } else {
        binned.requested = 0;
        binned.free->push_back(block.handle);
      }
    }
    requested_ -= block.requested;
    allocated_ -= block.size;
    --live_;
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.size == 0) return;
    if (block.requested > largest_) return inner().record_stream(block, stream);
    if (stream != binned_of(block).stream) events_.record_use(block.handle, stream);
  }
  void stream_synchronized(StreamId stream) override {
    events_.reach(stream);
    inner().stream_synchronized(stream);
  }
  void synchronized() override {
    events_.reach_all();
    inner().synchronized();
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = inner().statistics();
    result.requested = requested_;
    result.allocated = allocated_;
    result.pending += pending_;
    result.live_blocks = live_;
    for (const auto& [place, free] : free_)
      if (!free.empty()) result.largest_free = std::max(result.largest_free, place.first);
    return result;
  }

  Reason why_not_engaged() const override {
    return chunks_.empty() ? Reason(name_ + ": no request was small enough for a bin")
                           : inner().why_not_engaged();
  }

 private:
  using Number = StreamEvents::BlockHandle;  // of a block in a bin
  static constexpr Bytes kPending = ~Bytes{0};

  struct Binned {
    Address address = 0;
    Bytes requested = 0;  // 0 = free; kPending = freed, and still in use by a stream
    std::byte* data = nullptr;
    StreamId stream = 0;
    Bytes size = 0;
    std::deque<Number>* free = nullptr;  // the queue of its size and stream
  };

  Block serve(Bytes bytes, const AllocationHint& hint) {
    const Bytes size = std::max(std::bit_ceil(bytes), smallest_);
    std::deque<Number>& free = free_[{size, hint.stream}];
    if (free.empty()) provide(free, size, bytes, hint);
    const Number number = free.front();
    free.pop_front();
    Binned& binned = all_[number];
    binned.requested = bytes;
    unpoison(binned.data, bytes);
    return {.address = binned.address,
            .requested = bytes,
            .size = size,
            .data = binned.data,
            .handle = number};
  }

  // Before a request is refused, this waits for blocks that streams still use.
  void provide(std::deque<Number>& free, Bytes size, Bytes bytes, const AllocationHint& hint) {
    try {
      add_blocks(free, size, bytes, hint);
    } catch (const OutOfMemory&) {
      events_.reach_all();
      free_finished();
      if (free.empty()) throw;
    }
  }

  void add_blocks(std::deque<Number>& free, Bytes size, Bytes bytes, const AllocationHint& hint) {
    const Block chunk = ask_behind(size * blocks_at_a_time_, bytes, hint);
    poison(chunk.data, chunk.requested);
    chunks_.push_back(chunk);
    for (Bytes offset = 0; offset < chunk.requested; offset += size) {
      free.push_back(static_cast<Number>(all_.size()));
      all_.push_back({.address = chunk.address + offset,
                      .data = chunk.data == nullptr ? nullptr : chunk.data + offset,
                      .stream = hint.stream,
                      .size = size,
                      .free = &free});
    }
  }

  // Reports a refusal with the size that this adaptor's caller requested.
  Block ask_behind(Bytes whole, Bytes bytes, const AllocationHint& hint) {
    try {
      return inner().allocate(whole, hint);
    } catch (const OutOfMemory& error) {
      const AllocatorStatistics now = statistics();
      OutOfMemoryReport report = error.report();
      report.requested_bytes = bytes;
      report.allocated_bytes = now.allocated;
      report.free_bytes = now.reserved - now.allocated - now.pending;
      report.largest_free_bytes = now.largest_free;
      throw OutOfMemory(report);
    }
  }

  Binned& binned_of(const Block& block) {
    if (block.handle >= all_.size() || all_[block.handle].address != block.address ||
        all_[block.handle].requested != block.requested)
      throw Error(name_ + ": a block was freed that is not live");
    return all_[block.handle];
  }

  void free_finished() {
    for (const Number number : events_.take_finished()) {
      Binned& binned = all_[number];
      binned.requested = 0;
      pending_ -= binned.size;
      binned.free->push_back(number);
    }
  }

  std::string name_;
  Bytes smallest_;
  Bytes largest_;
  Bytes blocks_at_a_time_ = 0;
  std::vector<Block> chunks_;  // as the strategy behind served them
  std::vector<Binned> all_;
  std::map<std::pair<Bytes, StreamId>, std::deque<Number>> free_;  // by size and stream
  StreamEvents events_;
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
  Bytes pending_ = 0;
  std::uint64_t live_ = 0;
};

const bool binning_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "binning",
     .summary = "Serves requests of up to largest= from blocks of fixed sizes: powers of two from "
                "smallest= on, taken blocks= at a time and never given back (RMM's rules)",
     .parameters = {"blocks", "largest", "smallest"},
     .examples = {"binning(largest=64KiB,smallest=1KiB)|pool"},
     .create = create_adaptor<Binning>});

}  // namespace
}  // namespace headroom
