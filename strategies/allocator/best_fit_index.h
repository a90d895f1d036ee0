// Free blocks ordered by (size, address): the order in which best-fit allocators search. Sorted
// leaves of a few dozen entries under one sorted row of leaf keys: every operation is two binary
// searches and a short move inside one leaf, in a few nanoseconds while there are few entries and
// with logarithmically many comparisons when there are many.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/device/device_memory.h"

namespace headroom {

class BestFitIndex {
 public:
  struct Entry {
    Bytes size = 0;
    Address address = 0;
    std::uint32_t handle = 0;  // the owner's name for the block
  };

  void insert(const Entry& entry);
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

  bool empty() const { return leaves_.empty(); }
  Bytes largest() const;

 private:
  static constexpr std::size_t kLeafEntries = 32;
  struct Key {
    Bytes size = 0;
    Address address = 0;
  };
  struct Leaf {
    std::size_t count = 0;
    std::array<Entry, kLeafEntries> entries;
  };

  // Without branches to predict: one add per halving.
  template <typename Item>
  static std::size_t lower_bound(const Item* items, std::size_t count, const Key& key);

  std::size_t leaf_for(const Key& key) const;
  void split(std::size_t leaf);
  void remove(std::size_t leaf, std::size_t position);

  std::vector<std::unique_ptr<Leaf>> leaves_;  // none is empty
  std::vector<Key> firsts_;                    // no key of leaves_[i] is before firsts_[i]
  std::vector<std::unique_ptr<Leaf>> spare_;   // emptied leaves, kept: no heap traffic per step
};

}  // namespace headroom
