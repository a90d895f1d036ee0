#include "harness/device/device_memory.h"

#include <algorithm>
#include <chrono>

#include "harness/base/error.h"
#include "harness/memory/poison.h"
#include "harness/memory/recorder.h"

namespace headroom {
namespace {

// Far from zero, so that no segment's address is mistaken for "none".
constexpr Address kFirstAddress = Address{1} << 40;

class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t& total) : total_(total) {}
  ~Stopwatch() {
    total_ += static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

DeviceMemory::DeviceMemory(Bytes capacity, Bytes granule)
    : capacity_(align_down(capacity, granule)), granule_(granule), next_address_(kFirstAddress) {}

Segment DeviceMemory::allocate(Bytes bytes) {
  if (bytes == 0) throw Error("a segment of zero bytes was asked for");
  // The first comparison keeps the rounding from overflowing.
  if (bytes > capacity_ || align_up(bytes, granule_) > available()) {
    ++counters_.failed_allocations;
    throw OutOfMemory({.requested_bytes = bytes,
                       .capacity_bytes = capacity_,
                       .reserved_bytes = reserved_,
                       .allocator = "the device memory"});
  }
  Segment segment{.address = next_address_, .size = bytes, .charged = align_up(bytes, granule_)};
  {
    const Stopwatch watch(counters_.allocation_ns);
    segment.data = commit(segment.charged);
  }
  if (segment.data != nullptr) poison(segment.data + segment.size, segment.charged - segment.size);
  segment.id = next_segment_++;
  next_address_ += align_up(segment.charged, kSegmentAlignment);
  reserved_ += segment.charged;
  ++counters_.segment_allocations;
  if (recorder_ != nullptr)
    recorder_->record(EventKind::segment_alloc, segment.id, Role::activation, segment.size,
                      segment.charged, segment.address);
  return segment;
}

void DeviceMemory::free(const Segment& segment) {
  // The next user of these pages must not trip over marks left here.
  unpoison(segment.data, segment.charged);
  {
    const Stopwatch watch(counters_.allocation_ns);
    release(segment.data, segment.charged);
  }
  reserved_ -= segment.charged;
  ++counters_.segment_frees;
  if (recorder_ != nullptr)
    recorder_->record(EventKind::segment_free, segment.id, Role::activation, segment.size,
                      segment.charged, segment.address);
}

}  // namespace headroom
