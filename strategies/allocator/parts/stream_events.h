// Which freed blocks wait for streams that still use them, by PyTorch's rule (record_stream in
// c10/cuda/CUDACachingAllocator.cpp): a free leaves an event on every stream the block was used by
// beside its own, and the block is free once all of them are reached. Whoever owns this asks for
// what has become free when it likes; PyTorch does so at the next allocation.
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
  using BlockHandle = std::uint32_t;  // the owner's own

  // A live block is used by a stream that is not its own.
  void record_use(BlockHandle block, StreamId stream) { uses_[block].insert(stream); }
  // The block is being freed. Whether it has to wait; it is remembered then.
  bool defer(BlockHandle block) { return !uses_.empty() && leave_events(block); }

  // The stream, or all of them, have come to the events left so far.
  void reach(StreamId stream);
  void reach_all();

  bool any_waits() const { return !waiting_.empty(); }
  // The blocks that wait no longer: by stream of their last event, then in order of the frees.
  std::vector<BlockHandle> take_finished();

 private:
  bool leave_events(BlockHandle block);

  struct Queue {
    std::deque<BlockHandle> events;
    std::size_t reached = 0;  // of them, from the front
  };

  std::unordered_map<BlockHandle, std::set<StreamId>> uses_;
  std::unordered_map<BlockHandle, std::size_t> waiting_;  // events to come
  std::map<StreamId, Queue> queues_;
};

}  // namespace headroom
