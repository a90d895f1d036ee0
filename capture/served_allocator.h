// One of Headroom's allocators as the allocator of another program: any thread may call it, and a
// block is known by its address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "harness/base/spec.h"
#include "harness/device/device_memory.h"
#include "harness/memory/allocator.h"

namespace headroom {

struct ServedBytes {
  std::uint64_t requested = 0, allocated = 0, reserved = 0;
};

// The layout is part of the library's interface (library.cpp).
struct ServedFigures {
  ServedBytes now, peak, peak_since_reset;
  std::uint64_t allocations = 0, frees = 0, segments = 0;
  std::uint64_t refusals = 0, last_refused_bytes = 0;
};

class ServedAllocator {
 public:
  // Throws InputError for a spec that is unknown or that this memory does not suit.
  ServedAllocator(const Spec& spec, std::unique_ptr<DeviceMemory> memory);

  // Returns null for zero bytes. Throws OutOfMemory. `stream` is any value that tells streams
  // apart.
  void* allocate(Bytes bytes, const void* stream);
  // Returns false if no live block begins at `address`.
  bool free(void* address);
  void record_stream(void* address, const void* stream);
  void trim();
  // The program's training step is over, and its device has finished all work.
  void end_step();
  void reset_peaks();
  ServedFigures figures();
  // How often the device was asked for memory.
  std::uint64_t device_allocations();
  Reason why_not_engaged();

  // Called around fork(), so that the child does not inherit a lock that another thread holds.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  StreamId number_of(const void* stream);
  void raise_peaks();

  std::mutex mutex_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Allocator> strategy_;
  std::unordered_map<void*, Block> live_;
  std::map<const void*, StreamId> streams_;
  bool streams_share_ = false;  // a block may wait for another stream than its own
  ServedFigures figures_;
};

}  // namespace headroom
