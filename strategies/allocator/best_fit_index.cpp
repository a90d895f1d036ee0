#include "strategies/allocator/best_fit_index.h"

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

template <typename A, typename B>
bool before(const A& a, const B& b) {
  // Bitwise, so that the compiler needs no jump.
  return static_cast<bool>(
      static_cast<int>(a.size < b.size) |
      (static_cast<int>(a.size == b.size) & static_cast<int>(a.address < b.address)));
}

}  // namespace

// First position whose item is not before `key`.
template <typename Item>
std::size_t BestFitIndex::lower_bound(const Item* items, std::size_t count, const Key& key) {
  if (count == 0) return 0;
  const Item* base = items;
  while (count > 1) {
    const std::size_t half = count / 2;
    base += before(base[half - 1], key) ? half : 0;
    count -= half;
  }
  return static_cast<std::size_t>(base - items) + (before(*base, key) ? 1 : 0);
}

// The leaf whose range covers `key`: the last one that does not start after it.
std::size_t BestFitIndex::leaf_for(const Key& key) const {
  const std::size_t after = lower_bound(firsts_.data(), firsts_.size(), key);
  const bool starts_here = after < firsts_.size() && !before(key, firsts_[after]);
  return starts_here || after == 0 ? after : after - 1;
}

void BestFitIndex::split(std::size_t leaf) {
  std::unique_ptr<Leaf> upper;
  if (spare_.empty()) {
    upper = std::make_unique<Leaf>();
  } else {
    upper = std::move(spare_.back());
    spare_.pop_back();
  }
  Leaf& lower = *leaves_[leaf];
  constexpr std::size_t kHalf = kLeafEntries / 2;
  std::copy(lower.entries.begin() + kHalf, lower.entries.end(), upper->entries.begin());
  upper->count = kLeafEntries - kHalf;
  lower.count = kHalf;
  const auto next = static_cast<std::ptrdiff_t>(leaf) + 1;
  firsts_.insert(firsts_.begin() + next, Key{upper->entries[0].size, upper->entries[0].address});
  leaves_.insert(leaves_.begin() + next, std::move(upper));
}

void BestFitIndex::insert(const Entry& entry) {
  const Key key{entry.size, entry.address};
  if (leaves_.empty()) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Leaf>());
    leaves_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    leaves_[0]->entries[0] = entry;
    leaves_[0]->count = 1;
    firsts_.push_back(key);
    return;
  }
  std::size_t index = leaf_for(key);
  if (leaves_[index]->count == kLeafEntries) {
    split(index);
    if (!before(key, firsts_[index + 1])) ++index;
  }
  Leaf& leaf = *leaves_[index];
  const std::size_t position = lower_bound(leaf.entries.data(), leaf.count, key);
  Entry* const slot = leaf.entries.data() + position;
  std::copy_backward(slot, leaf.entries.data() + leaf.count, leaf.entries.data() + leaf.count + 1);
  *slot = entry;
  ++leaf.count;
  if (position == 0) firsts_[index] = key;
}

void BestFitIndex::remove(std::size_t index, std::size_t position) {
  Leaf& leaf = *leaves_[index];
  Entry* const slot = leaf.entries.data() + position;
  std::copy(slot + 1, leaf.entries.data() + leaf.count, slot);
  --leaf.count;
  const auto at = static_cast<std::ptrdiff_t>(index);
  if (leaf.count == 0) {
    spare_.push_back(std::move(leaves_[index]));
    leaves_.erase(leaves_.begin() + at);
    firsts_.erase(firsts_.begin() + at);
    return;
  }
  // A leaf that has become thin is filled from its successor, so that many erasures do not leave
  // a long row of nearly empty leaves.
  if (leaf.count >= kLeafEntries / 4 || index + 1 == leaves_.size()) return;
  Leaf& next = *leaves_[index + 1];
  if (leaf.count + next.count > kLeafEntries * 3 / 4) return;
  std::copy(next.entries.begin(), next.entries.begin() + static_cast<std::ptrdiff_t>(next.count),
            leaf.entries.data() + leaf.count);
  leaf.count += next.count;
  spare_.push_back(std::move(leaves_[index + 1]));
  leaves_.erase(leaves_.begin() + at + 1);
  firsts_.erase(firsts_.begin() + at + 1);
}

void BestFitIndex::erase(Bytes size, Address address) {
  const Key key{size, address};
  const std::size_t index = leaf_for(key);
  if (index < leaves_.size()) {
    const Leaf& leaf = *leaves_[index];
    const std::size_t position = lower_bound(leaf.entries.data(), leaf.count, key);
    if (position < leaf.count && leaf.entries[position].address == address &&
        leaf.entries[position].size == size) {
      remove(index, position);
      return;
    }
  }
  throw Error("best-fit index: a block to be taken out is not there");
}

bool BestFitIndex::take_at_least(Bytes size, Entry& taken) {
  if (leaves_.empty()) return false;
  const Key key{size, 0};
  std::size_t index = leaf_for(key);
  std::size_t position = lower_bound(leaves_[index]->entries.data(), leaves_[index]->count, key);
  if (position == leaves_[index]->count) {
    // Everything in this leaf is smaller: the next one begins with the answer.
    if (++index == leaves_.size()) return false;
    position = 0;
  }
  taken = leaves_[index]->entries[position];
  remove(index, position);
  return true;
}

bool BestFitIndex::find_from(Bytes size, Address address, Entry& found) const {
  if (leaves_.empty()) return false;
  const Key key{size, address};
  std::size_t index = leaf_for(key);
  std::size_t position = lower_bound(leaves_[index]->entries.data(), leaves_[index]->count, key);
  if (position == leaves_[index]->count) {
    if (++index == leaves_.size()) return false;
    position = 0;
  }
  found = leaves_[index]->entries[position];
  return true;
}

std::vector<BestFitIndex::Entry> BestFitIndex::entries() const {
  std::vector<Entry> all;
  for (const auto& leaf : leaves_)
    all.insert(all.end(), leaf->entries.begin(),
               leaf->entries.begin() + static_cast<std::ptrdiff_t>(leaf->count));
  return all;
}

std::vector<BestFitIndex::Entry> BestFitIndex::largest_entries(std::size_t count) const {
  std::vector<Entry> largest;
  for (std::size_t leaf = leaves_.size(); leaf > 0; --leaf) {
    for (std::size_t i = leaves_[leaf - 1]->count; i > 0; --i) {
      if (largest.size() == count) return largest;
      largest.push_back(leaves_[leaf - 1]->entries[i - 1]);
    }
  }
  return largest;
}

bool BestFitIndex::take_largest(Entry& taken) {
  if (leaves_.empty()) return false;
  const Leaf& last = *leaves_.back();
  taken = last.entries[last.count - 1];
  remove(leaves_.size() - 1, last.count - 1);
  return true;
}

Bytes BestFitIndex::largest() const {
  if (leaves_.empty()) return 0;
  const Leaf& last = *leaves_.back();
  return last.entries[last.count - 1].size;
}

}  // namespace headroom
