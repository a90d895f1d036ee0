// Free chunks ordered by (size, address): the order in which best-fit allocators search. Each power
// of two is divided into 64 size ranges, so narrow that most hold at most one chunk and branches on
// their number are predictable. A range is a short sorted list, linked through the chunks
// themselves, or a tree once it grows longer. Two levels of bitmaps find the next non-empty range.
// The data for a few hundred chunks stays in the L1 cache; with millions, the number of comparisons
// is logarithmic.
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
  // An index of chunks in that table, which must outlive the index.
  explicit BestFitIndex(Chunks& chunks) : chunks_(&chunks) {}

  // The size and address of a chunk must not change while it is in the index.
  void insert(ChunkHandle handle);
  // The chunk must be there.
  void erase(ChunkHandle handle);
  // Removes the smallest chunk of at least `size`, at the lowest address among equals; or the
  // largest chunk, at the highest address. kNoChunk when there is none.
  ChunkHandle take_at_least(Bytes size);
  ChunkHandle take_largest();

  // The first chunk not before (size, address), which stays in the index. kNoChunk when there is
  // none.
  ChunkHandle find_from(Bytes size, Address address) const;
  // All chunks, in order; and the last `count`, largest first.
  std::vector<ChunkHandle> all() const;
  std::vector<ChunkHandle> last(std::size_t count) const;

  Bytes largest() const;

 private:
  static constexpr std::uint32_t kListEntries = 32;
  static constexpr std::size_t kFewEnoughForList = 16;
  static constexpr unsigned kRangeBits = 6;  // ranges per power of two, as a power of two
  static constexpr std::size_t kRanges = std::size_t{64} << kRangeBits;
  static constexpr std::size_t kWords = kRanges / 64;  // equal to the number of bits in a word
  static constexpr std::size_t kNone = kRanges;
  static constexpr std::uint32_t kInTree = kListEntries + 1;

  struct Range {
    ChunkHandle first = kNoChunk;
    std::uint32_t count = 0;  // in the list, or kInTree: all are in the range's tree

    bool uses_tree() const { return count == kInTree; }
  };

  // The range of a size; ranges widen with size.
  static std::size_t range_of(Bytes size) {
    if (size < (Bytes{1} << kRangeBits)) return size;
    const auto power = static_cast<unsigned>(std::bit_width(size)) - 1;
    const Bytes part = (size >> (power - kRangeBits)) & ((Bytes{1} << kRangeBits) - 1);
    return (std::size_t{power} << kRangeBits) + part;
  }
  // The first non-empty range at or after `from`, and the last one; kNone when there is none.
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
  // The first chunk in a range's list that is not before (size, address), or kNoChunk; and the last
  // chunk of a non-empty list.
  ChunkHandle first_of_list(const Range& range, Bytes size, Address address) const;
  ChunkHandle last_of_list(const Range& range) const;
  ChunkHandle find_in(std::size_t range, Bytes size, Address address) const;
  // The chunks of a range, in order.
  std::vector<ChunkHandle> sorted(std::size_t range) const;
  // Removes the smallest chunk of at least `size` from `range`, which is non-empty or kNone, or a
  // later range.
  ChunkHandle take_from(std::size_t range, Bytes size);
  void remove_from_list(std::size_t range, ChunkHandle handle);
  // The rare path is not inlined, so that the frequent one needs few registers.
  void insert_into_tree(std::size_t range, ChunkHandle handle);
  void erase_from_tree(std::size_t range, ChunkHandle handle);
  ChunkHandle take_from_tree(std::size_t range, Bytes size);
  void after_removal_from_tree(std::size_t range);

  Chunks* chunks_;
  std::uint64_t occupied_words_ = 0;              // the words of occupied_ that are not 0
  std::array<std::uint64_t, kWords> occupied_{};  // non-empty ranges
  std::array<Range, kRanges> ranges_{};
  std::vector<std::unique_ptr<SortedEntries>> trees_ =
      std::vector<std::unique_ptr<SortedEntries>>(kRanges);  // by range, where there was need
};

}  // namespace headroom
