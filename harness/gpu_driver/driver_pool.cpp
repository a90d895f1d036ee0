#include "harness/gpu_driver/driver_pool.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace headroom {

DriverPool::DriverPool(std::uintptr_t begin, std::size_t addresses, Chunks chunks)
    : begin_(begin), addresses_(addresses), memory_(std::move(chunks)) {}

std::uintptr_t DriverPool::take(std::size_t bytes) {
  if (bytes > addresses_) return 0;
  const std::size_t size =
      std::max((bytes + kAlignment - 1) / kAlignment, std::size_t{1}) * kAlignment;
  ++time_;
  const std::size_t place = place_for(size);
  if (place + size > addresses_ || !bring_chunks(place, size)) return 0;
  if (const auto gap = gaps_.find(place); gap != gaps_.end()) {
    const std::size_t left = gap->second.bytes - size;
    remove_gap(gap);
    if (left > 0) add_gap(place + size, left);
  } else {
    end_ = place + size;
  }
  blocks_[place] = {size, bytes};
  used_ += bytes;
  most_used_ = std::max(most_used_, used_);
  most_held_ = std::max(most_held_, held_bytes());
  return begin_ + place;
}

bool DriverPool::give_back(std::uintptr_t block) {
  const auto found = blocks_.find(block - begin_);
  if (found == blocks_.end()) return false;
  ++time_;
  std::size_t begin = found->first, bytes = found->second.bytes;
  used_ -= found->second.requested;
  blocks_.erase(found);
  leave_chunks(begin, bytes);
  if (const auto behind = gaps_.find(begin + bytes); behind != gaps_.end()) {
    bytes += behind->second.bytes;
    remove_gap(behind);
  }
  if (const auto after = gaps_.lower_bound(begin); after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.bytes == begin) {
      begin = before->first;
      bytes += before->second.bytes;
      remove_gap(before);
    }
  }
  if (begin + bytes == end_)
    end_ = begin;
  else
    add_gap(begin, bytes);
  return true;
}

std::size_t DriverPool::largest_hole() const {
  std::size_t largest = 0;
  const auto look_into = [&](std::size_t begin, std::size_t end) {
    std::size_t hole = 0, expected = 0;
    for (auto chunk = chunks_.lower_bound(begin / kChunk);
         chunk != chunks_.end() && chunk->first * kChunk < end; ++chunk) {
      if (chunk->first != expected) hole = 0;
      expected = chunk->first + 1;
      hole += std::min(end, expected * kChunk) - std::max(begin, chunk->first * kChunk);
      largest = std::max(largest, hole);
    }
  };
  for (const auto& [begin, gap] : gaps_) look_into(begin, begin + gap.bytes);
  look_into(end_, SIZE_MAX);
  return largest;
}

void DriverPool::synchronise() {
  idle_.merge(freed_);
  freed_.clear();
  if (held_bytes() > threshold_) trim_to(threshold_);
}

void DriverPool::trim_to(std::size_t bytes) {
  idle_.merge(freed_);
  freed_.clear();
  while (held_bytes() > bytes && !idle_.empty()) {
    const std::size_t chunk = *idle_.rbegin();
    drop(chunk);
    memory_.give_back(chunk * kChunk);
  }
}

void DriverPool::give_back_all() {
  for (const auto& [chunk, blocks] : chunks_) memory_.give_back(chunk * kChunk);
  chunks_.clear();
}

std::size_t DriverPool::place_for(std::size_t bytes) {
  const auto smallest = gaps_by_size_.lower_bound({bytes, 0, 0});
  const auto whole = std::find_if(smallest, gaps_by_size_.end(), [&](const auto& gap) {
    return has_all_chunks(std::get<2>(gap), std::get<0>(gap));
  });
  if (whole != gaps_by_size_.end()) return std::get<2>(*whole);
  return smallest != gaps_by_size_.end() ? std::get<2>(*smallest) : end_;
}

bool DriverPool::bring_chunks(std::size_t begin, std::size_t bytes) {
  const std::size_t first = begin / kChunk, last = (begin + bytes - 1) / kChunk;
  std::vector<std::size_t> missing;
  for (std::size_t chunk = first; chunk <= last; ++chunk) {
    const auto found = chunks_.find(chunk);
    if (found == chunks_.end()) {
      missing.push_back(chunk);
      continue;
    }
    ++found->second;
    idle_.erase(chunk);
    freed_.erase(chunk);
  }
  for (const std::size_t chunk : missing) {
    if (!idle_.empty()) {
      const std::size_t unused = *idle_.begin();
      drop(unused);
      memory_.move(unused * kChunk, chunk * kChunk);
    } else if (!memory_.take(chunk * kChunk)) {
      leave_chunks(begin, bytes);
      return false;
    }
    chunks_[chunk] = 1;
  }
  return true;
}

void DriverPool::leave_chunks(std::size_t begin, std::size_t bytes) {
  for (std::size_t chunk = begin / kChunk; chunk <= (begin + bytes - 1) / kChunk; ++chunk)
    if (const auto found = chunks_.find(chunk); found != chunks_.end() && --found->second == 0)
      freed_.insert(chunk);
}

bool DriverPool::has_all_chunks(std::size_t begin, std::size_t bytes) const {
  const std::size_t first = begin / kChunk, last = (begin + bytes - 1) / kChunk;
  const auto from = chunks_.lower_bound(first), to = chunks_.upper_bound(last);
  return static_cast<std::size_t>(std::distance(from, to)) == last - first + 1;
}

void DriverPool::add_gap(std::size_t begin, std::size_t bytes) {
  gaps_[begin] = {bytes, time_};
  gaps_by_size_.insert({bytes, time_, begin});
}

void DriverPool::remove_gap(std::map<std::size_t, Gap>::iterator gap) {
  gaps_by_size_.erase({gap->second.bytes, gap->second.since, gap->first});
  gaps_.erase(gap);
}

void DriverPool::drop(std::size_t chunk) {
  idle_.erase(chunk);
  chunks_.erase(chunk);
}

}  // namespace headroom
