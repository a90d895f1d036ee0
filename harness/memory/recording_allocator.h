// Records every block that a strategy serves in the trace. The Executor allocates through it, and
// it forwards each call to the strategy.
#pragma once

#include "harness/base/error.h"
#include "harness/memory/allocator.h"
#include "harness/trace/recorder.h"

namespace headroom {

// Numbers blocks 1, 2, … in order of allocation. The number and the role travel in the Block, so a
// free needs no lookup. Blocks of zero bytes are not recorded.
class RecordingAllocator final : public Allocator {
 public:
  RecordingAllocator(Allocator& strategy, TraceRecorder& recorder)
      : strategy_(strategy), recorder_(recorder) {}

  // On OutOfMemory, records an oom event with the request and rethrows.
  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    Block block;
    try {
      block = strategy_.allocate(bytes, hint);
    } catch (const OutOfMemory&) {
      recorder_.record(EventKind::oom, 0, hint.role, bytes, 0, 0, hint.stream);
      throw;
    }
    if (block.size == 0) return block;
    block.id = ++last_id_;
    block.role = hint.role;
    block.stream = hint.stream;
    recorder_.record(EventKind::alloc, block.id, block.role, block.requested, block.size,
                     block.address, block.stream);
    return block;
  }

  // The free is recorded first, because the strategy may return the block's segment at once.
  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    recorder_.record(EventKind::free, block.id, block.role, block.requested, block.size,
                     block.address, block.stream);
    strategy_.deallocate(block);
  }

  AllocatorStatistics statistics() const override { return strategy_.statistics(); }
  void trim() override { strategy_.trim(); }
  void synchronized() override { strategy_.synchronized(); }
  void record_stream(const Block& block, StreamId stream) override {
    strategy_.record_stream(block, stream);
  }
  void stream_synchronized(StreamId stream) override { strategy_.stream_synchronized(stream); }
  Reason why_not_engaged() const override { return strategy_.why_not_engaged(); }

 private:
  Allocator& strategy_;
  TraceRecorder& recorder_;
  std::uint32_t last_id_ = 0;
};

}  // namespace headroom
