#include "strategies/allocator/best_fit_index.h"

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

template <typename Item>
bool before(const Item& item, Bytes size, Address address) {
  return (item.size < size) | ((item.size == size) & (item.address < address));
}

// Rare, and apart from the rest so that what is frequent needs few registers.
template <typename Item>
[[gnu::noinline]] void add_one(std::vector<Item>& items) {
  items.emplace_back();
}

}  // namespace

inline std::size_t BestFitIndex::next_range(std::size_t from) const {
  if (from >= kRanges) return kNone;
  std::size_t word = from / 64;
  std::uint64_t bits = occupied_[word] >> (from % 64) << (from % 64);
  if (bits == 0) {
    // In two steps, since a word has no bit 64 to begin from.
    const std::uint64_t words = occupied_words_ >> word >> 1 << 1 << word;
    if (words == 0) return kNone;
    word = static_cast<std::size_t>(std::countr_zero(words));
    bits = occupied_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t BestFitIndex::last_range() const {
  if (occupied_words_ == 0) return kNone;
  const auto word = static_cast<std::size_t>(63 - std::countl_zero(occupied_words_));
  return word * 64 + static_cast<std::size_t>(63 - std::countl_zero(occupied_[word]));
}

inline std::uint32_t BestFitIndex::new_node() {
  if (unused_nodes_ == kEnd) {
    unused_nodes_ = static_cast<std::uint32_t>(nodes_.size());
    add_one(nodes_);
  }
  const std::uint32_t node = unused_nodes_;
  unused_nodes_ = nodes_[node].next;
  return node;
}

inline void BestFitIndex::remove_from_list(std::size_t index, std::uint32_t node) {
  std::uint32_t* link = &ranges_[index].first;
  while (*link != node) link = &nodes_[*link].next;
  *link = nodes_[node].next;
  nodes_[node].next = unused_nodes_;
  unused_nodes_ = node;
  --ranges_[index].count;
  update_mark(index);
}

void BestFitIndex::insert(Bytes size, Address address, std::uint32_t handle) {
  const std::size_t index = range_of(size);
  if (ranges_[index].count >= kListEntries) return insert_into_tree(index, {size, address, handle});
  const std::uint32_t added = new_node();
  Range& range = ranges_[index];
  Node& node = nodes_[added];
  node.size = size;
  node.address = address;
  node.handle = handle;
  node.next = range.first;
  range.first = added;
  ++range.count;
  mark(index);
}

void BestFitIndex::insert_into_tree(std::size_t index, const Entry& entry) {
  Range& range = ranges_[index];
  if (!range.uses_tree()) {
    if (!trees_[index]) trees_[index] = std::make_unique<SortedEntries>();
    while (range.first != kEnd) {
      tree(index).insert(entry_of(nodes_[range.first]));
      remove_from_list(index, range.first);
    }
    range.count = kInTree;
    mark(index);
  }
  tree(index).insert(entry);
}

inline std::uint32_t BestFitIndex::first_of_list(const Range& range, Bytes size,
                                                 Address address) const {
  std::uint32_t found = kEnd;
  for (std::uint32_t i = range.first; i != kEnd; i = nodes_[i].next) {
    if (before(nodes_[i], size, address)) continue;
    if (found == kEnd || before(nodes_[i], nodes_[found].size, nodes_[found].address)) found = i;
  }
  return found;
}

std::uint32_t BestFitIndex::last_of_list(const Range& range) const {
  std::uint32_t found = range.first;
  for (std::uint32_t i = found; i != kEnd; i = nodes_[i].next)
    if (before(nodes_[found], nodes_[i].size, nodes_[i].address)) found = i;
  return found;
}

void BestFitIndex::after_removal_from_tree(std::size_t index) {
  if (tree(index).size() > kFewEnoughForList) return;
  ranges_[index].count = 0;
  update_mark(index);
  for (Entry entry; tree(index).take_at_least(0, entry);) insert(entry);
}

void BestFitIndex::erase_from_tree(std::size_t index, Bytes size, Address address) {
  tree(index).erase(size, address);
  after_removal_from_tree(index);
}

void BestFitIndex::erase(Bytes size, Address address) {
  const std::size_t index = range_of(size);
  const Range& range = ranges_[index];
  if (range.uses_tree()) return erase_from_tree(index, size, address);
  std::uint32_t node = range.first;
  while (node != kEnd && nodes_[node].address != address) node = nodes_[node].next;
  if (node == kEnd || nodes_[node].size != size)
    throw Error("best-fit index: a block to be taken out is not there");
  remove_from_list(index, node);
}

bool BestFitIndex::take_at_least(Bytes size, Entry& taken) {
  return take_from(next_range(range_of(size)), size, taken);
}

bool BestFitIndex::take_from(std::size_t index, Bytes size, Entry& taken) {
  for (; index != kNone; index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) return take_from_tree(index, size, taken);
    const std::uint32_t node = first_of_list(range, size, 0);
    if (node == kEnd) continue;
    taken = entry_of(nodes_[node]);
    remove_from_list(index, node);
    return true;
  }
  return false;
}

bool BestFitIndex::take_from_tree(std::size_t index, Bytes size, Entry& taken) {
  if (!tree(index).take_at_least(size, taken)) return take_from(next_range(index + 1), size, taken);
  after_removal_from_tree(index);
  return true;
}

bool BestFitIndex::take_largest(Entry& taken) {
  const std::size_t index = last_range();
  if (index == kNone) return false;
  Range& range = ranges_[index];
  if (range.uses_tree()) {
    tree(index).take_largest(taken);
    after_removal_from_tree(index);
  } else {
    const std::uint32_t node = last_of_list(range);
    taken = entry_of(nodes_[node]);
    remove_from_list(index, node);
  }
  return true;
}

bool BestFitIndex::find_from(Bytes size, Address address, Entry& found) const {
  for (std::size_t index = next_range(range_of(size)); index != kNone;
       index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) {
      if (tree(index).find_from(size, address, found)) return true;
      continue;
    }
    const std::uint32_t node = first_of_list(range, size, address);
    if (node == kEnd) continue;
    found = entry_of(nodes_[node]);
    return true;
  }
  return false;
}

std::vector<BestFitIndex::Entry> BestFitIndex::sorted_list(const Range& range) const {
  std::vector<Entry> list;
  for (std::uint32_t node = range.first; node != kEnd; node = nodes_[node].next)
    list.push_back(entry_of(nodes_[node]));
  std::sort(list.begin(), list.end(),
            [](const Entry& a, const Entry& b) { return before(a, b.size, b.address); });
  return list;
}

std::vector<BestFitIndex::Entry> BestFitIndex::entries() const {
  std::vector<Entry> all;
  for (std::size_t index = next_range(0); index != kNone; index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) {
      const std::vector<Entry> some = tree(index).entries();
      all.insert(all.end(), some.begin(), some.end());
    } else {
      const std::vector<Entry> some = sorted_list(range);
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return all;
}

std::vector<BestFitIndex::Entry> BestFitIndex::largest_entries(std::size_t count) const {
  std::vector<Entry> largest;
  for (std::size_t index = kRanges; index > 0 && largest.size() < count; --index) {
    const Range& range = ranges_[index - 1];
    if (range.uses_tree()) {
      const std::vector<Entry> some = tree(index - 1).largest_entries(count - largest.size());
      largest.insert(largest.end(), some.begin(), some.end());
      continue;
    }
    const std::vector<Entry> list = sorted_list(range);
    for (std::size_t i = list.size(); i > 0 && largest.size() < count; --i)
      largest.push_back(list[i - 1]);
  }
  return largest;
}

Bytes BestFitIndex::largest() const {
  const std::size_t index = last_range();
  if (index == kNone) return 0;
  const Range& range = ranges_[index];
  return range.uses_tree() ? tree(index).largest() : nodes_[last_of_list(range)].size;
}

}  // namespace headroom
