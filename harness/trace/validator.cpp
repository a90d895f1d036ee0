#include "harness/trace/validator.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

namespace headroom {
namespace {

constexpr Bytes kRequiredAlignment = 256;

struct Range {
  Address end = 0;
  std::uint32_t id = 0;
  Bytes requested = 0;
  Bytes size = 0;
};
using Ranges = std::map<Address, Range>;  // disjoint, by start

// The range that covers `address`, or end().
Ranges::const_iterator covering(const Ranges& ranges, Address address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  --after;
  return address < after->second.end ? after : ranges.end();
}

// A range that overlaps [start, end), or end().
Ranges::const_iterator overlapping(const Ranges& ranges, Address start, Address end) {
  const auto covered = covering(ranges, start);
  if (covered != ranges.end()) return covered;
  const auto next = ranges.lower_bound(start);
  return next != ranges.end() && next->first < end ? next : ranges.end();
}

class Judge {
 public:
  Judge(const Trace& trace, std::size_t limit) : trace_(trace), limit_(limit) {}

  std::vector<std::string> run() {
    for (index_ = 0; index_ < trace_.events.size() && found_.size() < limit_; ++index_)
      check(trace_.events[index_]);
    return std::move(found_);
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    if (found_.size() < limit_)
      found_.push_back(
          fmt::format("event {}: {}", index_, fmt::format(text, std::forward<Args>(args)...)));
  }

  void check(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::alloc:
        return check_alloc(event);
      case EventKind::free:
        return check_free(event);
      case EventKind::segment_alloc:
        return check_segment_alloc(event);
      case EventKind::segment_free:
        return check_segment_free(event);
      case EventKind::segment_map:
        return check_segment_map(event);
      case EventKind::segment_unmap:
        return check_segment_unmap(event);
      case EventKind::oom:
        return;
    }
    say("no such kind of event");
  }

  void check_alloc(const TraceEvent& event) {
    const Address end = event.address + event.size;
    if (event.size == 0) return say("block {} has no bytes", event.id);
    if (end < event.address) return say("block {} passes the end of addresses", event.id);
    if (event.size < event.requested)
      say("block {} has {} bytes of {} requested", event.id, event.size, event.requested);
    if (event.address % kRequiredAlignment != 0)
      say("block {} at {:#x} is not aligned to {}", event.id, event.address, kRequiredAlignment);
    const auto segment = covering(segments_, event.address);
    if (segment == segments_.end() || end > segment->second.end)
      say("block {} at [{:#x}, {:#x}) is not inside one live segment", event.id, event.address,
          end);
    const auto other = overlapping(blocks_, event.address, end);
    if (other != blocks_.end())
      return say("block {} at [{:#x}, {:#x}) overlaps live block {} at [{:#x}, {:#x})", event.id,
                 event.address, end, other->second.id, other->first, other->second.end);
    if (!live_.emplace(event.id, event.address).second)
      return say("block {} is allocated while it is live", event.id);
    blocks_[event.address] = {end, event.id, event.requested, event.size};
  }

  void check_free(const TraceEvent& event) {
    const auto live = live_.find(event.id);
    if (live == live_.end()) return say("block {} is freed but not live", event.id);
    const auto block = blocks_.find(live->second);
    if (block->first != event.address || block->second.size != event.size ||
        block->second.requested != event.requested)
      say("block {} is freed as {} of {} bytes at {:#x}, but was served as {} of {} at {:#x}",
          event.id, event.requested, event.size, event.address, block->second.requested,
          block->second.size, block->first);
    blocks_.erase(block);
    live_.erase(live);
  }

  void check_segment_alloc(const TraceEvent& event) {
    const Address end = event.address + event.requested;
    if (event.requested == 0) return say("segment {} has no bytes", event.id);
    if (end < event.address) return say("segment {} passes the end of addresses", event.id);
    if (event.size < event.requested)
      say("segment {} of {} bytes is charged only {}", event.id, event.requested, event.size);
    const auto other = overlapping(segments_, event.address, end);
    if (other != segments_.end())
      return say("segment {} at [{:#x}, {:#x}) overlaps live segment {}", event.id, event.address,
                 end, other->second.id);
    segments_[event.address] = {end, event.id, event.requested, event.size};
    charge(event.size);
  }

  void charge(Bytes bytes) {
    reserved_ += bytes;
    if (reserved_ > trace_.header.capacity_bytes)
      say("{} bytes are reserved of a capacity of {}", reserved_, trace_.header.capacity_bytes);
  }

  // Adjacent pages of one reservation become one segment.
  void check_segment_map(const TraceEvent& event) {
    Address start = event.address;
    Address end = event.address + event.requested;
    if (event.requested == 0) return say("reservation {} maps no bytes", event.id);
    if (end < event.address) return say("reservation {} passes the end of addresses", event.id);
    if (event.size != event.requested)
      say("reservation {} maps {} bytes and is charged {}", event.id, event.requested, event.size);
    const auto other = overlapping(segments_, start, end);
    if (other != segments_.end())
      return say("reservation {} maps [{:#x}, {:#x}), which overlaps segment {}", event.id, start,
                 end, other->second.id);
    const auto after = segments_.find(end);
    if (after != segments_.end() && after->second.id == event.id) {
      end = after->second.end;
      segments_.erase(after);
    }
    const auto before = covering(segments_, start - 1);
    if (before != segments_.end() && before->second.id == event.id) {
      start = before->first;
      segments_.erase(before);
    }
    segments_[start] = {end, event.id, end - start, end - start};
    charge(event.size);
  }

  void check_segment_unmap(const TraceEvent& event) {
    const Address end = event.address + event.requested;
    const auto mapped = covering(segments_, event.address);
    if (event.requested == 0 || mapped == segments_.end() || mapped->second.id != event.id ||
        end > mapped->second.end)
      return say("reservation {} unmaps [{:#x}, {:#x}), which it has not mapped", event.id,
                 event.address, end);
    const auto block = overlapping(blocks_, event.address, end);
    if (block != blocks_.end())
      say("reservation {} unmaps pages under live block {}", event.id, block->second.id);
    const Address start = mapped->first;
    const Address last = mapped->second.end;
    segments_.erase(mapped);
    if (start < event.address)
      segments_[start] = {event.address, event.id, event.address - start, event.address - start};
    if (end < last) segments_[end] = {last, event.id, last - end, last - end};
    reserved_ -= event.size;
  }

  void check_segment_free(const TraceEvent& event) {
    const auto segment = segments_.find(event.address);
    if (segment == segments_.end() || segment->second.id != event.id)
      return say("segment {} at {:#x} is freed but not live", event.id, event.address);
    const auto block = overlapping(blocks_, segment->first, segment->second.end);
    if (block != blocks_.end())
      say("segment {} is freed under live block {}", event.id, block->second.id);
    reserved_ -= segment->second.size;
    segments_.erase(segment);
  }

  const Trace& trace_;
  std::size_t limit_;
  std::size_t index_ = 0;
  std::vector<std::string> found_;
  Ranges segments_;  // usable bytes
  Ranges blocks_;
  std::unordered_map<std::uint32_t, Address> live_;
  Bytes reserved_ = 0;
};

}  // namespace

std::vector<std::string> violations(const Trace& trace, std::size_t limit) {
  return Judge(trace, limit).run();
}

}  // namespace headroom
