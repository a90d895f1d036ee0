// Free chunks ordered by (size, address): the order in which best-fit allocators search. 64 ranges
// of size a power of two, so narrow that most hold one chunk or none and the processor need not
// guess how many: each a list of few in order, linked through the chunks themselves, and where it
// grows longer, a tree. Two levels of bitmaps find the next range that is not empty. All that a
// few hundred chunks need stays in the nearest cache; logarithmically many comparisons when there
// are millions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strategies/allocator/parts/chunk.h"
#include "strategies/allocator/parts/sorted_entries.h"

namespace headroom {

class BestFitIndex {
 public:
  // Of chunks of that table, which has to outlive the index.
  explicit BestFitIndex(Chunks& chunks) : chunks_(&chunks) {}

  // A chunk in the index keeps its size and address.
  void insert(ChunkHandle handle);
  // The chunk must be there.
  void erase(ChunkHandle handle);
  // Takes out the smallest of at least `size`, at the lowest address among equals; or the largest,
  // at the highest address. kNoChunk when there is none.
  ChunkHandle take_at_least(Bytes size);
  ChunkHandle take_largest();

  // The first not before (size, address), left where it is. kNoChunk when there is none.
  ChunkHandle find_from(Bytes size, Address address) const;
  // All of them, in order; and the last `count`, largest first.
  std::vector<ChunkHandle> all() const;
  std::vector<ChunkHandle> last(std::size_t count) const;

  Bytes largest() const;

 private:
  static constexpr std::uint32_t kListEntries = 32;
  static constexpr std::size_t kFewEnoughForList = 16;
  static constexpr unsigned kRangeBits = 6;  // ranges per power of two, as a power of two
  static constexpr std::size_t kRanges = std::size_t{64} << kRangeBits;
  static constexpr std::size_t kWords = kRanges / 64;  // as many as bits in a word
  static constexpr std::size_t kNone = kRanges;
  static constexpr std::uint32_t kInTree = kListEntries + 1;

  struct Range {
    ChunkHandle first = kNoChunk;
    std::uint32_t count = 0;  // in the list, or kInTree: all are in the range's tree

    bool uses_tree() const { return count == kInTree; }
  };

  // Ranges grow with the sizes in them.
  static std::size_t range_of(Bytes size) {
    if (size < (Bytes{1} << kRangeBits)) return size;
    const auto power = static_cast<unsigned>(std::bit_width(size)) - 1;
    const Bytes part = (size >> (power - kRangeBits)) & ((Bytes{1} << kRangeBits) - 1);
    return (std::size_t{power} << kRangeBits) + part;
  }
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
  // Of a range's list the first chunk not before (size, address), kNoChunk where there is none; and
  // the last, where there is one.
  ChunkHandle first_of_list(const Range& range, Bytes size, Address address) const;
  ChunkHandle last_of_list(const Range& range) const;
  ChunkHandle find_in(std::size_t range, Bytes size, Address address) const;
  // A range's, in order.
  std::vector<ChunkHandle> sorted(std::size_t range) const;
  // Of the ranges from `range` on, which is not empty or kNone.
  ChunkHandle take_from(std::size_t range, Bytes size);
  void remove_from_list(std::size_t range, ChunkHandle handle);
  // Rare, and apart from the rest so that what is frequent needs few registers.
  void insert_into_tree(std::size_t range, ChunkHandle handle);
  void erase_from_tree(std::size_t range, ChunkHandle handle);
  ChunkHandle take_from_tree(std::size_t range, Bytes size);
  void after_removal_from_tree(std::size_t range);

  Chunks* chunks_;
  std::uint64_t occupied_words_ = 0;              // those of occupied_ that are not 0
  std::array<std::uint64_t, kWords> occupied_{};  // ranges that are not empty
  std::array<Range, kRanges> ranges_{};
  std::vector<std::unique_ptr<SortedEntries>> trees_ =
      std::vector<std::unique_ptr<SortedEntries>>(kRanges);  // by range, where there was need
};

}  // namespace headroom
