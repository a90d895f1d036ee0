// partition: divides the device into parts, each with its own memory and allocator, and serves each
// request in the part of its module. `partition(shares=layer3+layer4:0.4/rest:0.6)|bfc` gives two
// fifths of the device to the modules layer3 and layer4 and the rest to all others; a share may
// also be given in bytes.
// `partition(shares=generator:0.4/discriminator+rest:0.6,after=100,then=0.5/0.5)|caching` changes
// the shares after 100 steps.
//
// The parts correspond to TensorFlow's logical devices (tf.config.LogicalDeviceConfiguration with a
// memory_limit and a BFC allocator each). In TensorFlow a network is placed on them by hand and
// tensors are copied between them; here every device address is reachable and nothing is copied.
// TensorFlow has neither shares per layer nor shares that change, although a guide claims that both
// can be set.
//
// Cost: a request is refused when its own part is full, however much memory the others have; the
// figures show this effect. A part that shrinks frees idle memory and keeps live blocks. Strategies
// size themselves by the larger of a part's two shares; a strategy that allocates everything at
// once, such as bfc(growth=off), gets less if the part begins with the smaller share, and is
// reported as not engaged.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/memory_share.h"
#include "harness/memory/allocator.h"
#include "strategies/allocator/partition_options.h"

namespace headroom {
namespace {

class Partition final : public Allocator {
 public:
  Partition(const Spec& spec, const AllocatorAdaptor::MakeInner& make_inner, DeviceMemory& memory)
      : options_(read_partition_options(spec, memory.capacity())), memory_(memory) {
    for (const PartitionOptions::Part& part : options_.parts) {
      auto share = std::make_unique<MemoryShare>(memory, std::max(part.share, part.then));
      share->limit_to(part.share);
      auto allocator = make_inner(*share);
      parts_.push_back({part.name, std::move(share), std::move(allocator)});
    }
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    const std::size_t index = options_.part_of(hint.name);
    Part& part = parts_[index];
    try {
      const Block block = part.allocator->allocate(bytes, hint);
      part_of_.emplace(block.address, index);
      part.has_served = true;
      return block;
    } catch (const OutOfMemory&) {
      refuse(part, bytes);
    }
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    const auto found = part_of_.find(block.address);
    if (found == part_of_.end()) throw Error("partition: a block was freed that is not live");
    parts_[found->second].allocator->deallocate(block);
    part_of_.erase(found);
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics sum;
    for (const Part& part : parts_) {
      const AllocatorStatistics one = part.allocator->statistics();
      sum.requested += one.requested;
      sum.allocated += one.allocated;
      sum.pending += one.pending;
      sum.reserved += one.reserved;
      sum.largest_free = std::max(sum.largest_free, one.largest_free);
      sum.live_blocks += one.live_blocks;
      sum.segments += one.segments;
      sum.splits += one.splits;
      sum.merges += one.merges;
    }
    return sum;
  }

  void trim() override {
    for (const Part& part : parts_) part.allocator->trim();
  }

  void synchronized() override {
    for (const Part& part : parts_) part.allocator->synchronized();
    if (++steps_ != options_.after) return;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i].share->limit_to(options_.parts[i].then);
    trim();
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.size == 0) return;
    const auto found = part_of_.find(block.address);
    if (found == part_of_.end()) throw Error("partition: a block is used that is not live");
    parts_[found->second].allocator->record_stream(block, stream);
  }
  void stream_synchronized(StreamId stream) override {
    for (const Part& part : parts_) part.allocator->stream_synchronized(stream);
  }

  Reason why_not_engaged() const override {
    if (steps_ < options_.after)
      return fmt::format("partition: shares should change after {} steps, but there were only {}",
                         options_.after, steps_);
    for (const Part& part : parts_) {
      if (!part.has_served)
        return fmt::format(
            "partition: {} requested nothing; is the module named as the "
            "workload names it?",
            part.name);
      if (part.share->reserved() > part.share->limit())
        return fmt::format("partition: {} holds {} and so did not shrink to {}", part.name,
                           format_bytes(part.share->reserved()), format_bytes(part.share->limit()));
      if (const Reason why = part.allocator->why_not_engaged())
        return fmt::format("partition: {}: {}", part.name, *why);
    }
    return std::nullopt;
  }

 private:
  struct Part {
    std::string name;
    std::unique_ptr<MemoryShare> share;
    std::unique_ptr<Allocator> allocator;
    bool has_served = false;
  };

  // Throws OutOfMemory for one part; the message says whether another part has enough memory.
  [[noreturn]] void refuse(const Part& part, Bytes bytes) const {
    const AllocatorStatistics now = statistics();
    const AllocatorStatistics inside = part.allocator->statistics();
    throw OutOfMemory(
        {.requested_bytes = bytes,
         .capacity_bytes = memory_.capacity(),
         .reserved_bytes = now.reserved,
         .allocated_bytes = now.allocated,
         .free_bytes = now.reserved - now.allocated - now.pending,
         .largest_free_bytes = now.largest_free,
         .allocator = fmt::format(
             "partition, in the part of {}, which may hold {} and has {} in use, while the other "
             "parts have {} left to them",
             part.name, format_bytes(part.share->limit()), format_bytes(inside.allocated),
             format_bytes(left_to_others(part)))});
  }

  Bytes left_to_others(const Part& full) const {
    Bytes left = 0;
    for (const Part& part : parts_) {
      const Bytes in_use = part.allocator->statistics().allocated;
      if (&part != &full) left += part.share->limit() - std::min(part.share->limit(), in_use);
    }
    return left;
  }

  PartitionOptions options_;
  DeviceMemory& memory_;
  std::vector<Part> parts_;
  std::unordered_map<Address, std::size_t> part_of_;  // of each live block
  std::int64_t steps_ = 0;
};

const bool partition_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "partition",
     .summary = "Gives modules fixed shares of the device (shares=generator:0.4/rest:0.6, or "
                "bytes), each with an allocator and a limit of its own, as TensorFlow's logical "
                "devices have. Other shares (then=0.5/0.5) apply after that many steps (after=)",
     .parameters = {"after", "shares", "then"},
     .examples = {"partition(shares=generator:0.5/rest:0.5)|bfc(growth=on)",
                  "partition(after=1,shares=generator:0.4/discriminator+rest:0.6,then=0.5/0.5)|"
                  "caching"},
     .create = [](const Spec& spec, const AllocatorAdaptor::MakeInner& make_inner,
                  DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Partition>(spec, make_inner, memory);
     }});

}  // namespace
}  // namespace headroom
