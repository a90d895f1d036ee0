#include "strategies/allocator/best_fit_index.h"

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

bool before(const BestFitIndex::Entry& entry, Bytes size, Address address) {
  return (entry.size < size) | ((entry.size == size) & (entry.address < address));
}
bool in_order(const BestFitIndex::Entry& a, const BestFitIndex::Entry& b) {
  return before(a, b.size, b.address);
}

// `chosen` or, if that holds, `other`: without a jump, because which entry of a row is searched for
// cannot be predicted.
void replace_if(bool holds, std::uint64_t& chosen, std::uint64_t other) {
  chosen ^= (chosen ^ other) & (std::uint64_t{0} - std::uint64_t{holds});
}

}  // namespace

std::size_t BestFitIndex::next_range(std::size_t from) const {
  if (from >= kRanges) return kNone;
  std::size_t word = from / 64;
  std::uint64_t bits = occupied_[word] >> (from % 64) << (from % 64);
  while (bits == 0) {
    if (++word == kWords) return kNone;
    bits = occupied_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

std::size_t BestFitIndex::last_range() const {
  for (std::size_t word = kWords; word > 0; --word)
    if (const std::uint64_t bits = occupied_[word - 1]; bits != 0)
      return word * 64 - 1 - static_cast<std::size_t>(std::countl_zero(bits));
  return kNone;
}

inline void BestFitIndex::remove_from_row(std::size_t index, std::size_t position) {
  Range& range = ranges_[index];
  --range.count;
  range.row[position] = range.row[range.count];
  update_mark(index);
}

void BestFitIndex::insert(Bytes size, Address address, std::uint32_t handle) {
  const std::size_t index = range_of(size);
  Range& range = ranges_[index];
  if (range.count >= kRowEntries) return insert_into_tree(index, {size, address, handle});
  mark(index);
  Entry& added = range.row[range.count++];
  added.size = size;
  added.address = address;
  added.handle = handle;
}

void BestFitIndex::insert_into_tree(std::size_t index, const Entry& entry) {
  Range& range = ranges_[index];
  if (!range.uses_tree()) {
    if (!range.tree) range.tree = std::make_unique<SortedEntries>();
    for (const Entry& each : range.row) range.tree->insert(each);
    range.count = kInTree;
  }
  range.tree->insert(entry);
}

inline std::size_t BestFitIndex::first_of_row(const Range& range, Bytes size, Address address) {
  std::uint64_t found = range.count;
  Bytes found_size = ~Bytes{0};
  Address found_address = ~Address{0};
  for (std::size_t i = 0; i < range.count; ++i) {
    const Entry& entry = range.row[i];
    // Both sides always, and no jump.
    const int fits = before(entry, size, address) ? 0 : 1;
    const int better = before(entry, found_size, found_address) ? 1 : 0;
    const bool is_it = (fits & better) != 0;
    replace_if(is_it, found, i);
    replace_if(is_it, found_size, entry.size);
    replace_if(is_it, found_address, entry.address);
  }
  return found;
}

std::size_t BestFitIndex::last_of_row(const Range& range) {
  const auto end = range.row.begin() + static_cast<std::ptrdiff_t>(range.count);
  return static_cast<std::size_t>(std::max_element(range.row.begin(), end, in_order) -
                                  range.row.begin());
}

void BestFitIndex::after_removal_from_tree(std::size_t index) {
  Range& range = ranges_[index];
  if (range.tree->size() > kFewEnoughForRow) return;
  range.count = 0;
  while (range.tree->take_at_least(0, range.row[range.count])) ++range.count;
}

void BestFitIndex::erase_from_tree(std::size_t index, Bytes size, Address address) {
  ranges_[index].tree->erase(size, address);
  after_removal_from_tree(index);
}

void BestFitIndex::erase(Bytes size, Address address) {
  const std::size_t index = range_of(size);
  const Range& range = ranges_[index];
  if (range.uses_tree()) return erase_from_tree(index, size, address);
  std::uint64_t found = range.count;
  for (std::size_t i = 0; i < range.count; ++i)
    replace_if(range.row[i].address == address, found, i);
  if (found == range.count || range.row[found].size != size)
    throw Error("best-fit index: a block to be taken out is not there");
  remove_from_row(index, found);
}

bool BestFitIndex::take_at_least(Bytes size, Entry& taken) {
  return take_from(next_range(range_of(size)), size, taken);
}

bool BestFitIndex::take_from(std::size_t index, Bytes size, Entry& taken) {
  for (; index != kNone; index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) return take_from_tree(index, size, taken);
    const std::size_t position = first_of_row(range, size, 0);
    if (position == range.count) continue;
    taken = range.row[position];
    remove_from_row(index, position);
    return true;
  }
  return false;
}

bool BestFitIndex::take_from_tree(std::size_t index, Bytes size, Entry& taken) {
  if (!ranges_[index].tree->take_at_least(size, taken))
    return take_from(next_range(index + 1), size, taken);
  after_removal_from_tree(index);
  return true;
}

bool BestFitIndex::take_largest(Entry& taken) {
  const std::size_t index = last_range();
  if (index == kNone) return false;
  Range& range = ranges_[index];
  if (range.uses_tree()) {
    range.tree->take_largest(taken);
    after_removal_from_tree(index);
  } else {
    const std::size_t position = last_of_row(range);
    taken = range.row[position];
    remove_from_row(index, position);
  }
  return true;
}

bool BestFitIndex::find_from(Bytes size, Address address, Entry& found) const {
  for (std::size_t index = next_range(range_of(size)); index != kNone;
       index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) {
      if (range.tree->find_from(size, address, found)) return true;
      continue;
    }
    const std::size_t position = first_of_row(range, size, address);
    if (position == range.count) continue;
    found = range.row[position];
    return true;
  }
  return false;
}

std::vector<BestFitIndex::Entry> BestFitIndex::sorted_row(const Range& range) {
  std::vector<Entry> row(range.row.begin(),
                         range.row.begin() + static_cast<std::ptrdiff_t>(range.count));
  std::sort(row.begin(), row.end(), in_order);
  return row;
}

std::vector<BestFitIndex::Entry> BestFitIndex::entries() const {
  std::vector<Entry> all;
  for (std::size_t index = next_range(0); index != kNone; index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) {
      const std::vector<Entry> some = range.tree->entries();
      all.insert(all.end(), some.begin(), some.end());
    } else {
      const std::vector<Entry> some = sorted_row(range);
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
      const std::vector<Entry> some = range.tree->largest_entries(count - largest.size());
      largest.insert(largest.end(), some.begin(), some.end());
      continue;
    }
    const std::vector<Entry> row = sorted_row(range);
    for (std::size_t i = row.size(); i > 0 && largest.size() < count; --i)
      largest.push_back(row[i - 1]);
  }
  return largest;
}

Bytes BestFitIndex::largest() const {
  const std::size_t index = last_range();
  if (index == kNone) return 0;
  const Range& range = ranges_[index];
  return range.uses_tree() ? range.tree->largest() : range.row[last_of_row(range)].size;
}

}  // namespace headroom
