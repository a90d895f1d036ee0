// Many free blocks ordered by (size, address). Sorted leaves of a few dozen entries, in branches of
// a few dozen leaves, under one row of branches: every operation takes three binary searches and
// short moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/device/device_memory.h"

namespace headroom {

class SortedEntries {
 public:
  struct Entry {
    Bytes size = 0;
    Address address = 0;
    std::uint32_t handle = 0;  // the owner's name for the block
  };

  void insert(const Entry& entry);
  // The entry must be there.
  void erase(Bytes size, Address address);
  // Removes the smallest entry of at least `size`, at the lowest address among equals. False when
  // there is none.
  bool take_at_least(Bytes size, Entry& taken);
  // Removes the largest entry, at the highest address among equals. False when there is none.
  bool take_largest(Entry& taken);

  // Finds the first entry not before (size, address) without removing it. False when there is none.
  bool find_from(Bytes size, Address address, Entry& found) const;
  // All entries, in order.
  std::vector<Entry> entries() const;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Bytes largest() const;

 private:
  static constexpr std::size_t kLeafEntries = 32;
  static constexpr std::size_t kBranchLeaves = 64;
  struct Key {
    Bytes size = 0;
    Address address = 0;
  };
  struct Leaf {
    std::size_t count = 0;
    std::array<Entry, kLeafEntries> entries;
  };
  struct Branch {
    std::size_t count = 0;
    std::array<Key, kBranchLeaves> firsts;  // no key of leaves[i] is before firsts[i]
    std::array<Leaf*, kBranchLeaves> leaves;
  };
  struct Place {
    std::size_t branch = 0;
    std::size_t leaf = 0;
    std::size_t entry = 0;
  };

  // Binary search without branches: one addition per halving.
  template <typename Item>
  static std::size_t lower_bound(const Item* items, std::size_t count, const Key& key);
  static std::size_t last_not_after(const Key* firsts, std::size_t count, const Key& key);

  Leaf& leaf_at(const Place& place) const { return *branches_[place.branch]->leaves[place.leaf]; }
  // The place of the key, present or not: in the leaf whose range covers it.
  Place place_of(const Key& key) const;
  // Finds the place of the first entry not before the key; false when there is none.
  bool find(const Key& key, Place& place) const;
  void make_room(Place& place, const Key& key);
  void split_branch(std::size_t branch);
  void remove(const Place& place);
  void drop_leaf(std::size_t branch, std::size_t leaf);

  // Emptied nodes are kept for reuse, so that a step allocates nothing from the heap.
  template <typename Node>
  struct Nodes {
    std::vector<std::unique_ptr<Node>> all;
    std::vector<Node*> spare;

    Node* take();
  };

  std::size_t size_ = 0;
  std::vector<Branch*> branches_;  // branches and leaves are never empty
  std::vector<Key> firsts_;        // no key of branches_[i] is before firsts_[i]
  Nodes<Leaf> leaf_nodes_;
  Nodes<Branch> branch_nodes_;
};

}  // namespace headroom
