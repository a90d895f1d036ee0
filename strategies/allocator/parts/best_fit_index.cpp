#include "strategies/allocator/parts/best_fit_index.h"

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

bool before(const Chunk& chunk, Bytes size, Address address) {
  return (chunk.size < size) | ((chunk.size == size) & (chunk.address < address));
}

bool before(const Chunk& a, const Chunk& b) { return before(a, b.size, b.address); }

}  // namespace

inline std::size_t BestFitIndex::next_range(std::size_t from) const {
  if (from >= kRanges) return kNone;
  std::size_t word = from / 64;
  std::uint64_t bits = occupied_[word] >> (from % 64) << (from % 64);
  if (bits == 0) {
    // Two shifts, because one shift by 64 bits would be undefined.
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

inline void BestFitIndex::remove_from_list(std::size_t index, ChunkHandle handle) {
  Chunks& chunks = *chunks_;
  const ChunkHandle previous = chunks[handle].previous_in_list;
  const ChunkHandle next = chunks[handle].next_in_list;
  ChunkHandle* link = &ranges_[index].first;
  if (previous != kNoChunk) link = &chunks[previous].next_in_list;
  if (*link != handle) throw Error("best-fit index: the chunk to be removed is not in it");
  *link = next;
  chunks[next].previous_in_list = previous;
  --ranges_[index].count;
  update_mark(index);
}

void BestFitIndex::insert(ChunkHandle handle) {
  Chunks& chunks = *chunks_;
  const std::size_t index = range_of(chunks[handle].size);
  Range& range = ranges_[index];
  if (range.count >= kListEntries) return insert_into_tree(index, handle);
  ChunkHandle previous = kNoChunk;
  ChunkHandle* link = &range.first;
  for (; before(chunks[*link], chunks[handle]); link = &chunks[previous].next_in_list)
    previous = *link;
  chunks[*link].previous_in_list = handle;
  chunks[handle].previous_in_list = previous;
  chunks[handle].next_in_list = *link;
  *link = handle;
  ++range.count;
  mark(index);
}

void BestFitIndex::insert_into_tree(std::size_t index, ChunkHandle handle) {
  const auto add = [&](ChunkHandle added) {
    const Chunk& chunk = (*chunks_)[added];
    tree(index).insert({chunk.size, chunk.address, added});
  };
  Range& range = ranges_[index];
  if (!range.uses_tree()) {
    if (!trees_[index]) trees_[index] = std::make_unique<SortedEntries>();
    for (ChunkHandle i = range.first; i != kNoChunk; i = (*chunks_)[i].next_in_list) add(i);
    range = {.count = kInTree};
  }
  add(handle);
}

inline ChunkHandle BestFitIndex::first_of_list(const Range& range, Bytes size,
                                               Address address) const {
  ChunkHandle i = range.first;  // kNoChunk ends the search, since it is larger than all others
  while (before((*chunks_)[i], size, address)) i = (*chunks_)[i].next_in_list;
  return i;
}

ChunkHandle BestFitIndex::last_of_list(const Range& range) const {
  ChunkHandle last = range.first;
  while ((*chunks_)[last].next_in_list != kNoChunk) last = (*chunks_)[last].next_in_list;
  return last;
}

void BestFitIndex::after_removal_from_tree(std::size_t index) {
  if (tree(index).size() > kFewEnoughForList) return;
  ranges_[index].count = 0;
  update_mark(index);
  for (SortedEntries::Entry entry; tree(index).take_at_least(0, entry);) insert(entry.handle);
}

void BestFitIndex::erase_from_tree(std::size_t index, ChunkHandle handle) {
  const Chunk& chunk = (*chunks_)[handle];
  tree(index).erase(chunk.size, chunk.address);
  after_removal_from_tree(index);
}

void BestFitIndex::erase(ChunkHandle handle) {
  const std::size_t index = range_of((*chunks_)[handle].size);
  if (ranges_[index].uses_tree()) return erase_from_tree(index, handle);
  remove_from_list(index, handle);
}

ChunkHandle BestFitIndex::take_at_least(Bytes size) {
  return take_from(next_range(range_of(size)), size);
}

ChunkHandle BestFitIndex::take_from(std::size_t index, Bytes size) {
  for (; index != kNone; index = next_range(index + 1)) {
    const Range& range = ranges_[index];
    if (range.uses_tree()) return take_from_tree(index, size);
    const ChunkHandle found = first_of_list(range, size, 0);
    if (found == kNoChunk) continue;
    remove_from_list(index, found);
    return found;
  }
  return kNoChunk;
}

ChunkHandle BestFitIndex::take_from_tree(std::size_t index, Bytes size) {
  SortedEntries::Entry taken;
  if (!tree(index).take_at_least(size, taken)) return take_from(next_range(index + 1), size);
  after_removal_from_tree(index);
  return taken.handle;
}

ChunkHandle BestFitIndex::take_largest() {
  const std::size_t index = last_range();
  if (index == kNone) return kNoChunk;
  if (ranges_[index].uses_tree()) {
    SortedEntries::Entry taken;
    tree(index).take_largest(taken);
    after_removal_from_tree(index);
    return taken.handle;
  }
  const ChunkHandle last = last_of_list(ranges_[index]);
  remove_from_list(index, last);
  return last;
}

ChunkHandle BestFitIndex::find_in(std::size_t index, Bytes size, Address address) const {
  if (!ranges_[index].uses_tree()) return first_of_list(ranges_[index], size, address);
  SortedEntries::Entry found;
  return tree(index).find_from(size, address, found) ? found.handle : kNoChunk;
}

ChunkHandle BestFitIndex::find_from(Bytes size, Address address) const {
  for (std::size_t index = next_range(range_of(size)); index != kNone;
       index = next_range(index + 1)) {
    const ChunkHandle found = find_in(index, size, address);
    if (found != kNoChunk) return found;
  }
  return kNoChunk;
}

std::vector<ChunkHandle> BestFitIndex::sorted(std::size_t index) const {
  std::vector<ChunkHandle> handles;
  if (ranges_[index].uses_tree()) {
    for (const SortedEntries::Entry& entry : tree(index).entries()) handles.push_back(entry.handle);
    return handles;
  }
  for (ChunkHandle i = ranges_[index].first; i != kNoChunk; i = (*chunks_)[i].next_in_list)
    handles.push_back(i);
  return handles;
}

std::vector<ChunkHandle> BestFitIndex::all() const {
  std::vector<ChunkHandle> handles;
  for (std::size_t index = next_range(0); index != kNone; index = next_range(index + 1)) {
    const std::vector<ChunkHandle> some = sorted(index);
    handles.insert(handles.end(), some.begin(), some.end());
  }
  return handles;
}

std::vector<ChunkHandle> BestFitIndex::last(std::size_t count) const {
  std::vector<ChunkHandle> handles;
  for (std::size_t index = kRanges; index > 0 && handles.size() < count; --index) {
    const std::vector<ChunkHandle> some = sorted(index - 1);
    const std::size_t wanted = std::min(some.size(), count - handles.size());
    handles.insert(handles.end(), some.rbegin(),
                   some.rbegin() + static_cast<std::ptrdiff_t>(wanted));
  }
  return handles;
}

Bytes BestFitIndex::largest() const {
  const std::size_t index = last_range();
  if (index == kNone) return 0;
  const Range& range = ranges_[index];
  return range.uses_tree() ? tree(index).largest() : (*chunks_)[last_of_list(range)].size;
}

}  // namespace headroom
