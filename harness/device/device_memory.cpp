#include "harness/device/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/device/poison.h"
#include "harness/trace/recorder.h"

namespace headroom {
namespace {

// Addresses start far from zero, so that no segment's address is mistaken for "none".
constexpr Address kFirstAddress = Address{1} << 40;

class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t& total) : total_(total) {}
  ~Stopwatch() { total_ += ns_since(start_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t& total_;
  Clock::time_point start_ = Clock::now();
};

std::byte* data_at(const Reservation& place, Bytes offset) {
  return place.data == nullptr ? nullptr : place.data + offset;
}

}  // namespace

DeviceMemory::DeviceMemory(Bytes capacity, Bytes granule)
    : capacity_(align_down(capacity, granule)), granule_(granule), next_address_(kFirstAddress) {}

template <typename Call>
void DeviceMemory::ask_driver(Call call) {
  const Stopwatch watch(counters_.allocation_ns);
  try {
    call();
  } catch (const OutOfMemory&) {
    ++counters_.failed_allocations;
    ++counters_.driver_refusals;
    throw;
  }
}

std::string DeviceMemory::driver_refusals() const {
  if (counters_.driver_refusals == 0) return "";
  return fmt::format(
      "the driver refused memory {} times although the capacity of {} had room: another program "
      "uses the device, or the libraries took the rest; name a smaller capacity",
      counters_.driver_refusals, format_bytes(capacity_));
}

Segment DeviceMemory::allocate(Bytes bytes) {
  if (bytes == 0) throw Error("a segment of zero bytes was requested");
  require_available(bytes);
  Segment segment{.address = next_address_, .size = bytes, .charged = align_up(bytes, granule_)};
  ask_driver([&] { segment.data = commit(segment.charged); });
  if (segment.data != nullptr) poison(segment.data + segment.size, segment.charged - segment.size);
  segment.id = next_segment_++;
  next_address_ += align_up(segment.charged, kSegmentAlignment);
  reserved_ += segment.charged;
  ++counters_.segment_allocations;
  record_segment(EventKind::segment_alloc, segment);
  return segment;
}

Segment DeviceMemory::adopt(std::byte* data, Bytes bytes) {
  const Segment segment{.id = next_segment_++,
                        .address = next_address_,
                        .size = bytes,
                        .charged = bytes,
                        .data = data};
  next_address_ += align_up(bytes, kSegmentAlignment);
  reserved_ += bytes;
  ++counters_.segment_allocations;
  record_segment(EventKind::segment_alloc, segment);
  return segment;
}

void DeviceMemory::disown(const Segment& segment) {
  reserved_ -= segment.charged;
  ++counters_.segment_frees;
  record_segment(EventKind::segment_free, segment);
}

void DeviceMemory::require_available(Bytes bytes) {
  // Comparing with the capacity first keeps the rounding from overflowing.
  if (bytes <= capacity_ && align_up(bytes, granule_) <= available()) return;
  ++counters_.failed_allocations;
  throw OutOfMemory({.requested_bytes = bytes,
                     .capacity_bytes = capacity_,
                     .reserved_bytes = reserved_,
                     .allocator = "the device memory"});
}

void DeviceMemory::free(const Segment& segment) {
  // Clears the poison, so that the next user of these pages does not trigger it.
  unpoison(segment.data, segment.charged);
  {
    const Stopwatch watch(counters_.allocation_ns);
    release(segment.data, segment.charged);
  }
  reserved_ -= segment.charged;
  ++counters_.segment_frees;
  record_segment(EventKind::segment_free, segment);
}

Reservation DeviceMemory::reserve(Bytes bytes, Bytes unit) {
  if (unit == 0 || unit % page() != 0)
    throw Error("addresses are reserved in whole pages of " + format_bytes(page()));
  if (bytes == 0 || bytes % unit != 0)
    throw Error("addresses are reserved in whole units of " + format_bytes(unit));
  Reservation place{
      .address = next_address_, .size = bytes, .unit = unit, .data = reserve_addresses(bytes)};
  place.id = next_segment_++;
  // Leaves one unit of alignment free, so that two reservations are never adjacent.
  next_address_ += align_up(bytes, kSegmentAlignment) + kSegmentAlignment;
  mapped_[place.id].resize(bytes / unit);
  return place;
}

void DeviceMemory::map(const Reservation& place, Bytes offset, Bytes bytes) {
  require_available(bytes);
  set_mapped(place, offset, bytes, true);
  try {
    ask_driver([&] { map_pages(data_at(place, offset), bytes, place.unit); });
  } catch (...) {
    set_mapped(place, offset, bytes, false);
    throw;
  }
  reserved_ += bytes;
  ++counters_.maps;
  record_pages(EventKind::segment_map, place, offset, bytes);
}

void DeviceMemory::unmap(const Reservation& place, Bytes offset, Bytes bytes) {
  set_mapped(place, offset, bytes, false);
  unpoison(data_at(place, offset), bytes);
  {
    const Stopwatch watch(counters_.allocation_ns);
    unmap_pages(data_at(place, offset), bytes);
  }
  reserved_ -= bytes;
  ++counters_.unmaps;
  record_pages(EventKind::segment_unmap, place, offset, bytes);
}

void DeviceMemory::move(const Reservation& from, Bytes from_offset, const Reservation& to,
                        Bytes to_offset, Bytes bytes) {
  if (from.unit != to.unit)
    throw Error("pages cannot be moved between reservations with different units");
  set_mapped(from, from_offset, bytes, false);
  set_mapped(to, to_offset, bytes, true);
  unpoison(data_at(from, from_offset), bytes);
  {
    const Stopwatch watch(counters_.allocation_ns);
    move_pages(data_at(from, from_offset), data_at(to, to_offset), bytes);
  }
  ++counters_.moves;
  record_pages(EventKind::segment_unmap, from, from_offset, bytes);
  record_pages(EventKind::segment_map, to, to_offset, bytes);
}

void DeviceMemory::unreserve(const Reservation& place) {
  const auto pages = mapped_.find(place.id);
  if (pages == mapped_.end()) throw Error("the addresses to be released are not reserved");
  if (std::find(pages->second.begin(), pages->second.end(), true) != pages->second.end())
    throw Error("addresses are released while pages are mapped there");
  mapped_.erase(pages);
  release_addresses(place.data, place.size);
}

std::byte* DeviceMemory::reserve_addresses(Bytes) {
  throw NotSupported("this device has no virtual memory to map pages with");
}

void DeviceMemory::set_mapped(const Reservation& place, Bytes offset, Bytes bytes, bool mapped) {
  const auto pages = mapped_.find(place.id);
  if (pages == mapped_.end()) throw Error("no addresses are reserved for these pages");
  if (bytes == 0 || bytes % place.unit != 0 || offset % place.unit != 0 || offset > place.size ||
      bytes > place.size - offset)
    throw Error("the pages are not whole units of the reservation");
  const auto first = pages->second.begin() + static_cast<std::ptrdiff_t>(offset / place.unit);
  const auto last = first + static_cast<std::ptrdiff_t>(bytes / place.unit);
  if (std::find(first, last, mapped) != last)
    throw Error(mapped ? "a page is mapped already" : "a page to be unmapped is not mapped");
  std::fill(first, last, mapped);
}

void DeviceMemory::record_segment(EventKind kind, const Segment& segment) const {
  if (recorder_ != nullptr)
    recorder_->record(kind, segment.id, Role::activation, segment.size, segment.charged,
                      segment.address);
}

void DeviceMemory::record_pages(EventKind kind, const Reservation& place, Bytes offset,
                                Bytes bytes) const {
  if (recorder_ != nullptr)
    recorder_->record(kind, place.id, Role::activation, bytes, bytes, place.address + offset);
}

}  // namespace headroom
