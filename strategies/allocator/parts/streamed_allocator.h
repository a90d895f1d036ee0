// A ChunkedAllocator with separate pools per stream: a freed chunk that other streams used returns
// to its pool once they have reached the free, which is checked at the next request. `Strategy` is
// the class derived from this one; it tells the stream of a live chunk (stream_of) and takes back
// an idle chunk (give_back).
#pragma once

#include "strategies/allocator/parts/chunked_allocator.h"
#include "strategies/allocator/parts/stream_events.h"

namespace headroom {

template <typename Strategy>
class StreamedAllocator : public ChunkedAllocator {
 public:
  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    const Handle handle = take_back(block);
    if (events_.defer(handle)) return suspend(handle);
    strategy().give_back(handle);
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.size == 0) return;
    require_live(block);
    if (stream != strategy().stream_of(block.handle)) events_.record_use(block.handle, stream);
  }
  void stream_synchronized(StreamId stream) override { events_.reach(stream); }
  void synchronized() override { events_.reach_all(); }

 protected:
  using ChunkedAllocator::ChunkedAllocator;

  void free_finished() {
    if (events_.any_waits()) free_waiting();
  }
  // Called before the cache is emptied, as in the original.
  void wait_for_all_streams() {
    events_.reach_all();
    free_finished();
  }

 private:
  // The rare path is not inlined, so that the frequent one needs few registers.
  [[gnu::noinline]] void free_waiting() {
    for (const Handle handle : events_.take_finished()) {
      resume(handle);
      strategy().give_back(handle);
    }
  }

  Strategy& strategy() { return static_cast<Strategy&>(*this); }

  StreamEvents events_;
};

}  // namespace headroom
