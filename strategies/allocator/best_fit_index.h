// Free blocks ordered by (size, address): the order in which best-fit allocators search. 64 ranges
// of size a power of two, so narrow that most hold one block or none and the processor need not
// guess how many: each a list of few in no order and, where it grows longer, a tree. Two levels of
// bitmaps find the next range that is not empty. All that a few hundred blocks need stays in the
// nearest cache; logarithmically many comparisons when there are millions.
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
  static constexpr std::uint32_t kListEntries = 16;
  static constexpr std::size_t kFewEnoughForList = 8;
  static constexpr unsigned kRangeBits = 6;  // ranges per power of two, as a power of two
  static constexpr std::size_t kRanges = std::size_t{64} << kRangeBits;
  static constexpr std::size_t kWords = kRanges / 64;  // as many as bits in a word
  static constexpr std::size_t kNone = kRanges;
  static constexpr std::uint32_t kInTree = kListEntries + 1;
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};

  struct Range {
    std::uint32_t first = kEnd;  // in nodes_
    std::uint32_t count = 0;     // in the list, or kInTree: all are in the range's tree

    bool uses_tree() const { return count == kInTree; }
  };
  struct Node {
    Bytes size = 0;
    Address address = 0;
    std::uint32_t handle = 0;
    std::uint32_t next = kEnd;
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
  void mark(std::size_t range) {
    occupied_[range / 64] |= std::uint64_t{1} << (range % 64);
    occupied_words_ |= std::uint64_t{1} << (range / 64);
  }
  void update_mark(std::size_t range) {
    std::uint64_t& word = occupied_[range / 64];
    word &= ~(std::uint64_t{ranges_[range].count == 0} << (range % 64));
    occupied_words_ &= ~(std::uint64_t{word == 0} << (range / 64));
  }
  SortedEntries& tree(std::size_t range) { return *trees_[range]; }
  const SortedEntries& tree(std::size_t range) const { return *trees_[range]; }
  // Its node of the first entry not before (size, address), kEnd where there is none; and of the
  // largest, where there is one.
  std::uint32_t first_of_list(const Range& range, Bytes size, Address address) const;
  std::uint32_t last_of_list(const Range& range) const;
  std::vector<Entry> sorted_list(const Range& range) const;
  // Of the ranges from `range` on, which is not empty or kNone.
  bool take_from(std::size_t range, Bytes size, Entry& taken);
  void remove_from_list(std::size_t range, std::uint32_t node);
  std::uint32_t new_node();
  static Entry entry_of(const Node& node) { return {node.size, node.address, node.handle}; }
  // Rare, and apart from the rest so that what is frequent needs few registers.
  void insert_into_tree(std::size_t range, const Entry& entry);
  void erase_from_tree(std::size_t range, Bytes size, Address address);
  bool take_from_tree(std::size_t range, Bytes size, Entry& taken);
  void after_removal_from_tree(std::size_t range);

  std::uint64_t occupied_words_ = 0;              // those of occupied_ that are not 0
  std::array<std::uint64_t, kWords> occupied_{};  // ranges that are not empty
  std::vector<Range> ranges_ = std::vector<Range>(kRanges);
  std::vector<Node> nodes_;            // of all lists
  std::uint32_t unused_nodes_ = kEnd;  // a list too: the last given up is taken first
  std::vector<std::unique_ptr<SortedEntries>> trees_ =
      std::vector<std::unique_ptr<SortedEntries>>(kRanges);  // by range, where there was need
};

}  // namespace headroom
