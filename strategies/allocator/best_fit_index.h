// Free blocks ordered by (size, address): the order in which best-fit allocators search. Four
// ranges of size a power of two, each a short row in no order and, where it grows long, a tree; a
// bitmap finds the next range that is not empty. A few nanoseconds while rows are short,
// logarithmically many comparisons when there are millions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strategies/allocator/sorted_entries.h"

namespace headroom {

class BestFitIndex {
 public:
  using Entry = SortedEntries::Entry;

  // Fields travel in registers: an entry read back as a whole just after it was written in parts
  // makes the processor wait.
  void insert(const Entry& entry) { insert(entry.size, entry.address, entry.handle); }
  // The entry must be there.
  void erase(Bytes size, Address address);
  // Takes out the smallest entry of at least `size`, at the lowest address among equals.
  // False when there is none.
  bool take_at_least(Bytes size, Entry& taken);
  // Takes out the largest entry, at the highest address among equals. False when there is none.
  bool take_largest(Entry& taken);

  // The first entry not before (size, address), left where it is. False when there is none.
  bool find_from(Bytes size, Address address, Entry& found) const;
  // All of them, in order; and the last `count`, largest first.
  std::vector<Entry> entries() const;
  std::vector<Entry> largest_entries(std::size_t count) const;

  bool empty() const { return last_range() == kNone; }
  Bytes largest() const;

 private:
  static constexpr std::size_t kRowEntries = 16;
  static constexpr std::size_t kFewEnoughForRow = 8;
  static constexpr unsigned kRangeBits = 3;  // ranges per power of two, as a power of two
  static constexpr std::size_t kRanges = std::size_t{64} << kRangeBits;
  static constexpr std::size_t kWords = kRanges / 64;
  static constexpr std::size_t kNone = kRanges;
  static constexpr std::size_t kInTree = kRowEntries + 1;

  struct Range {
    std::size_t count = 0;  // in the row, or kInTree
    std::array<Entry, kRowEntries> row{};
    std::unique_ptr<SortedEntries> tree;  // holds all where there are too many for the row

    bool uses_tree() const { return count == kInTree; }
  };

  // Ranges grow with the sizes in them.
  static std::size_t range_of(Bytes size) {
    if (size < (Bytes{1} << kRangeBits)) return size;
    const auto power = static_cast<unsigned>(std::bit_width(size)) - 1;
    const Bytes part = (size >> (power - kRangeBits)) & ((Bytes{1} << kRangeBits) - 1);
    return (std::size_t{power} << kRangeBits) + part;
  }
  void insert(Bytes size, Address address, std::uint32_t handle);
  // The first range from `from` on that is not empty, and the last; kNone when there is none.
  std::size_t next_range(std::size_t from) const;
  std::size_t last_range() const;
  void mark(std::size_t range) { occupied_[range / 64] |= std::uint64_t{1} << (range % 64); }
  void update_mark(std::size_t range) {
    occupied_[range / 64] &= ~(std::uint64_t{ranges_[range].count == 0} << (range % 64));
  }
  // The place in the row of the first entry not before (size, address), range.count where there is
  // none; and of the largest, where there is one.
  static std::size_t first_of_row(const Range& range, Bytes size, Address address);
  static std::size_t last_of_row(const Range& range);
  static std::vector<Entry> sorted_row(const Range& range);
  // Of the ranges from `range` on, which is not empty or kNone.
  bool take_from(std::size_t range, Bytes size, Entry& taken);
  void remove_from_row(std::size_t range, std::size_t position);
  // Rare, and apart from the rest so that what is frequent needs few registers.
  void insert_into_tree(std::size_t range, const Entry& entry);
  void erase_from_tree(std::size_t range, Bytes size, Address address);
  bool take_from_tree(std::size_t range, Bytes size, Entry& taken);
  void after_removal_from_tree(std::size_t range);

  std::array<std::uint64_t, kWords> occupied_{};
  std::vector<Range> ranges_ = std::vector<Range>(kRanges);
};

}  // namespace headroom
