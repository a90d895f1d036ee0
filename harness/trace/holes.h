// The free address ranges of a device's segments during a replay. Used by the ledger.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "harness/base/units.h"

namespace headroom {

// Free address ranges inside segments. A block must be taken from a single hole and returned
// between holes, which proves that blocks are disjoint and inside a segment. Operations that would
// violate this return false.
class Holes {
 public:
  bool add_segment(Address start, Bytes size) {
    const auto next = segments_.lower_bound(start);
    if (next != segments_.end() && next->first < start + size) return false;
    if (next != segments_.begin() && std::prev(next)->second > start) return false;
    segments_[start] = start + size;
    holes_[start] = start + size;
    total_ += size;
    return true;
  }

  bool remove_segment(Address start) {
    const auto segment = segments_.find(start);
    const auto hole = holes_.find(start);
    if (segment == segments_.end() || hole == holes_.end() || hole->second != segment->second)
      return false;
    total_ -= segment->second - start;
    segments_.erase(segment);
    holes_.erase(hole);
    return true;
  }

  // Newly mapped pages that adjoin mapped pages of the same reservation are merged into one
  // segment.
  bool map(Address start, Bytes size, std::uint32_t reservation) {
    if (!add_segment(start, size)) return false;
    const auto mapped = segments_.find(start);
    const auto after = std::next(mapped);
    const bool joins_after = after != segments_.end() && after->first == mapped->second &&
                             reservation_of(after->first) == reservation;
    const bool joins_before = mapped != segments_.begin() && std::prev(mapped)->second == start &&
                              reservation_of(std::prev(mapped)->first) == reservation;
    reservations_[start] = reservation;
    if (joins_after) join(mapped, after);
    if (joins_before) join(std::prev(mapped), mapped);
    return true;
  }

  bool unmap(Address start, Bytes size, std::uint32_t reservation) {
    if (!take(start, size)) return false;
    const auto segment = std::prev(segments_.upper_bound(start));
    if (reservation_of(segment->first) != reservation) return false;
    const Address end = segment->second;
    if (start + size < end) {
      segments_[start + size] = end;
      reservations_[start + size] = reservation;
    }
    if (segment->first < start) {
      segment->second = start;
    } else {
      reservations_.erase(start);
      segments_.erase(segment);
    }
    return true;
  }

  bool take(Address start, Bytes size) {
    auto hole = holes_.upper_bound(start);
    if (size == 0 || hole == holes_.begin()) return false;
    --hole;
    const Address hole_end = hole->second;
    if (start + size > hole_end || start + size < start) return false;
    if (hole->first == start)
      holes_.erase(hole);
    else
      hole->second = start;
    if (start + size < hole_end) holes_[start + size] = hole_end;
    total_ -= size;
    return true;
  }

  bool give(Address start, Bytes size) {
    Address end = start + size;
    auto segment = segments_.upper_bound(start);
    if (segment == segments_.begin()) return false;
    --segment;
    if (end > segment->second) return false;
    auto next = holes_.lower_bound(start);
    if (next != holes_.end() && next->first < end) return false;
    if (next != holes_.end() && next->first == end && end < segment->second) {
      end = next->second;
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      const auto previous = std::prev(next);
      if (previous->second > start) return false;
      if (previous->second == start && previous->first >= segment->first) {
        previous->second = end;
        total_ += size;
        return true;
      }
    }
    holes_[start] = end;
    total_ += size;
    return true;
  }

  Bytes total() const { return total_; }
  Bytes largest() const {
    Bytes result = 0;
    for (const auto& [start, end] : holes_) result = std::max(result, end - start);
    return result;
  }

 private:
  using Ranges = std::map<Address, Address>;

  std::uint32_t reservation_of(Address start) const {
    const auto found = reservations_.find(start);
    return found == reservations_.end() ? 0 : found->second;
  }

  // Merges two adjacent segments, and the holes that meet at their boundary.
  void join(Ranges::iterator low, Ranges::iterator high) {
    const Address seam = high->first;
    low->second = high->second;
    reservations_.erase(seam);
    segments_.erase(high);
    const auto upper = holes_.find(seam);
    if (upper == holes_.end() || upper == holes_.begin()) return;
    const auto lower = std::prev(upper);
    if (lower->second != seam || lower->first < low->first) return;
    lower->second = upper->second;
    holes_.erase(upper);
  }

  Ranges segments_;                                // start → end of the usable bytes
  std::map<Address, std::uint32_t> reservations_;  // of segments that are mapped pages, by start
  Ranges holes_;
  Bytes total_ = 0;
};

}  // namespace headroom
