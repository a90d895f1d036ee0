#include "strategies/allocator/parts/sorted_entries.h"

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

template <typename A, typename B>
bool before(const A& a, const B& b) {
  // Bitwise operators, so that the compiler needs no branch.
  return static_cast<bool>(
      static_cast<int>(a.size < b.size) |
      (static_cast<int>(a.size == b.size) & static_cast<int>(a.address < b.address)));
}

// Makes room at `position` among `count` items, or closes it.
template <typename Item>
void shift_up(Item* items, std::size_t count, std::size_t position) {
  std::copy_backward(items + position, items + count, items + count + 1);
}
template <typename Item>
void shift_down(Item* items, std::size_t count, std::size_t position) {
  std::copy(items + position + 1, items + count, items + position);
}

template <typename Item>
void insert_at(std::vector<Item>& items, std::size_t position, const Item& item) {
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(position), item);
}
template <typename Item>
void erase_at(std::vector<Item>& items, std::size_t position) {
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(position));
}

}  // namespace

template <typename Node>
Node* SortedEntries::Nodes<Node>::take() {
  if (spare.empty()) {
    all.push_back(std::make_unique<Node>());
    spare.push_back(all.back().get());
  }
  Node* node = spare.back();
  spare.pop_back();
  node->count = 0;
  return node;
}

// First position whose item is not before `key`.
template <typename Item>
std::size_t SortedEntries::lower_bound(const Item* items, std::size_t count, const Key& key) {
  if (count == 0) return 0;
  const Item* base = items;
  while (count > 1) {
    const std::size_t half = count / 2;
    base += before(base[half - 1], key) ? half : 0;
    count -= half;
  }
  return static_cast<std::size_t>(base - items) + (before(*base, key) ? 1 : 0);
}

std::size_t SortedEntries::last_not_after(const Key* firsts, std::size_t count, const Key& key) {
  if (count == 1) return 0;
  const std::size_t after = lower_bound(firsts, count, key);
  const bool starts_here = after < count && !before(key, firsts[after]);
  return starts_here || after == 0 ? after : after - 1;
}

SortedEntries::Place SortedEntries::place_of(const Key& key) const {
  Place place;
  place.branch = last_not_after(firsts_.data(), firsts_.size(), key);
  const Branch& branch = *branches_[place.branch];
  place.leaf = last_not_after(branch.firsts.data(), branch.count, key);
  const Leaf& leaf = *branch.leaves[place.leaf];
  place.entry = lower_bound(leaf.entries.data(), leaf.count, key);
  return place;
}

bool SortedEntries::find(const Key& key, Place& place) const {
  if (branches_.empty()) return false;
  place = place_of(key);
  if (place.entry < leaf_at(place).count) return true;
  // All entries of this leaf precede the key, so the next leaf begins with the answer.
  place.entry = 0;
  if (++place.leaf < branches_[place.branch]->count) return true;
  place.leaf = 0;
  return ++place.branch < branches_.size();
}

void SortedEntries::split_branch(std::size_t branch) {
  constexpr std::size_t kHalf = kBranchLeaves / 2;
  Branch& lower = *branches_[branch];
  Branch* upper = branch_nodes_.take();
  std::copy(lower.firsts.begin() + kHalf, lower.firsts.end(), upper->firsts.begin());
  std::copy(lower.leaves.begin() + kHalf, lower.leaves.end(), upper->leaves.begin());
  upper->count = kBranchLeaves - kHalf;
  lower.count = kHalf;
  insert_at(firsts_, branch + 1, upper->firsts[0]);
  insert_at(branches_, branch + 1, upper);
}

// Splits the leaf, and the branch if needed; `place` is then where the key belongs.
void SortedEntries::make_room(Place& place, const Key& key) {
  if (branches_[place.branch]->count == kBranchLeaves) {
    split_branch(place.branch);
    place = place_of(key);
  }
  constexpr std::size_t kHalf = kLeafEntries / 2;
  Branch& branch = *branches_[place.branch];
  Leaf& lower = *branch.leaves[place.leaf];
  Leaf* upper = leaf_nodes_.take();
  std::copy(lower.entries.begin() + kHalf, lower.entries.end(), upper->entries.begin());
  upper->count = kLeafEntries - kHalf;
  lower.count = kHalf;
  shift_up(branch.firsts.data(), branch.count, place.leaf + 1);
  shift_up(branch.leaves.data(), branch.count, place.leaf + 1);
  branch.firsts[place.leaf + 1] = {upper->entries[0].size, upper->entries[0].address};
  branch.leaves[place.leaf + 1] = upper;
  ++branch.count;
  place = place_of(key);
}

void SortedEntries::insert(const Entry& entry) {
  ++size_;
  const Key key{entry.size, entry.address};
  if (branches_.empty()) {
    Branch* branch = branch_nodes_.take();
    branch->leaves[0] = leaf_nodes_.take();
    branch->firsts[0] = key;
    branch->count = 1;
    branches_.push_back(branch);
    firsts_.push_back(key);
  }
  Place place = place_of(key);
  if (leaf_at(place).count == kLeafEntries) make_room(place, key);
  Leaf& leaf = leaf_at(place);
  shift_up(leaf.entries.data(), leaf.count, place.entry);
  leaf.entries[place.entry] = entry;
  ++leaf.count;
  if (place.entry > 0) return;
  branches_[place.branch]->firsts[place.leaf] = key;
  if (place.leaf == 0) firsts_[place.branch] = key;
}

void SortedEntries::drop_leaf(std::size_t index, std::size_t leaf) {
  Branch& branch = *branches_[index];
  leaf_nodes_.spare.push_back(branch.leaves[leaf]);
  shift_down(branch.firsts.data(), branch.count, leaf);
  shift_down(branch.leaves.data(), branch.count, leaf);
  if (--branch.count > 0) return;
  branch_nodes_.spare.push_back(&branch);
  erase_at(branches_, index);
  erase_at(firsts_, index);
}

void SortedEntries::remove(const Place& place) {
  --size_;
  Leaf& leaf = leaf_at(place);
  shift_down(leaf.entries.data(), leaf.count, place.entry);
  if (--leaf.count == 0) return drop_leaf(place.branch, place.leaf);
  // A leaf that has become thin is filled from its successor, so that many erasures do not leave
  // a long row of nearly empty leaves.
  const Branch& branch = *branches_[place.branch];
  if (leaf.count >= kLeafEntries / 4 || place.leaf + 1 == branch.count) return;
  const Leaf& next = *branch.leaves[place.leaf + 1];
  if (leaf.count + next.count > kLeafEntries * 3 / 4) return;
  std::copy(next.entries.begin(), next.entries.begin() + static_cast<std::ptrdiff_t>(next.count),
            leaf.entries.data() + leaf.count);
  leaf.count += next.count;
  drop_leaf(place.branch, place.leaf + 1);
}

void SortedEntries::erase(Bytes size, Address address) {
  if (!branches_.empty()) {
    const Place place = place_of({size, address});
    const Leaf& leaf = leaf_at(place);
    if (place.entry < leaf.count && leaf.entries[place.entry].address == address &&
        leaf.entries[place.entry].size == size)
      return remove(place);
  }
  throw Error("free blocks: the block to be removed is not among them");
}

bool SortedEntries::take_at_least(Bytes size, Entry& taken) {
  Place place;
  if (!find({size, 0}, place)) return false;
  taken = leaf_at(place).entries[place.entry];
  remove(place);
  return true;
}

bool SortedEntries::find_from(Bytes size, Address address, Entry& found) const {
  Place place;
  if (!find({size, address}, place)) return false;
  found = leaf_at(place).entries[place.entry];
  return true;
}

std::vector<SortedEntries::Entry> SortedEntries::entries() const {
  std::vector<Entry> all;
  for (const Branch* branch : branches_) {
    for (std::size_t i = 0; i < branch->count; ++i) {
      const Leaf& leaf = *branch->leaves[i];
      all.insert(all.end(), leaf.entries.begin(),
                 leaf.entries.begin() + static_cast<std::ptrdiff_t>(leaf.count));
    }
  }
  return all;
}

bool SortedEntries::take_largest(Entry& taken) {
  if (branches_.empty()) return false;
  const Branch& branch = *branches_.back();
  const Leaf& leaf = *branch.leaves[branch.count - 1];
  taken = leaf.entries[leaf.count - 1];
  remove({branches_.size() - 1, branch.count - 1, leaf.count - 1});
  return true;
}

Bytes SortedEntries::largest() const {
  if (branches_.empty()) return 0;
  const Branch& branch = *branches_.back();
  const Leaf& leaf = *branch.leaves[branch.count - 1];
  return leaf.entries[leaf.count - 1].size;
}

}  // namespace headroom
