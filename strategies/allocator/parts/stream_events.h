// Tracks the freed blocks that wait for streams which still use them, by PyTorch's rule
// (record_stream in c10/cuda/CUDACachingAllocator.cpp): a free records an event on every other
// stream that used the block, and the block is free once all these events are reached. The owner
// decides when to ask for finished blocks; PyTorch does so at the next allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "harness/memory/allocator.h"

namespace headroom {

class StreamEvents {
 public:
  using BlockHandle = std::uint32_t;  // chosen by the owner

  // Records that a live block is used by a stream other than its own.
  void record_use(BlockHandle block, StreamId stream) { uses_[block].insert(stream); }
  // Called when the block is freed. Returns whether it has to wait; a waiting block is remembered.
  bool defer(BlockHandle block) { return !uses_.empty() && leave_events(block); }

  // The stream, or all streams, have reached the events recorded so far.
  void reach(StreamId stream);
  void reach_all();

  bool any_waits() const { return !waiting_.empty(); }
  // Returns the blocks that need not wait any longer: by stream of their last event, then in order
  // of the frees.
  std::vector<BlockHandle> take_finished();

 private:
  bool leave_events(BlockHandle block);

  struct Queue {
    std::deque<BlockHandle> events;
    std::size_t reached = 0;  // number of events reached, from the front
  };

  std::unordered_map<BlockHandle, std::set<StreamId>> uses_;
  std::unordered_map<BlockHandle, std::size_t> waiting_;  // number of events not yet reached
  std::map<StreamId, Queue> queues_;
};

}  // namespace headroom
