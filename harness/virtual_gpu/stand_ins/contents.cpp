#include "harness/virtual_gpu/stand_ins/contents.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "harness/virtual_gpu/stand_ins/device_memory.h"

namespace headroom::virtual_gpu {
namespace {

// Frameworks allocate at least this many bytes, so a result has at least as many for itself.
constexpr std::size_t kLeastAllocation = 256;

using Bytes = std::vector<unsigned char>;
struct Piece {
  Bytes bytes;
  std::uint64_t written = 0;  // when, in the order of `now`
};

std::mutex contents_mutex;
std::map<std::uintptr_t, Piece> pieces;           // by address; they do not overlap
std::map<std::uintptr_t, std::uint64_t> results;  // when a result was last written, by its address
std::uint64_t now = 0;

// Removes [begin, end) from the pieces. The mutex must be held.
void cut_out(std::uintptr_t begin, std::uintptr_t end) {
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin()) --at;
  while (at != pieces.end() && at->first < end) {
    const std::uintptr_t first = at->first, last = first + at->second.bytes.size();
    if (last <= begin) {
      ++at;
      continue;
    }
    auto [held, written] = std::move(at->second);
    at = pieces.erase(at);
    if (last > end) {
      Bytes rest(held.end() - static_cast<std::ptrdiff_t>(last - end), held.end());
      at = pieces.emplace(end, Piece{std::move(rest), written}).first;
    }
    if (first < begin) {
      held.resize(begin - first);
      pieces.emplace(first, Piece{std::move(held), written});
    }
  }
}

// Returns the end of the piece in which an address lies, or 0. The mutex must be held.
std::uintptr_t end_of_piece_at(std::uintptr_t address) {
  auto at = pieces.upper_bound(address);
  if (at == pieces.begin()) return 0;
  --at;
  const std::uintptr_t end = at->first + at->second.bytes.size();
  return end > address ? end : 0;
}

// Calls seen(address, contents, bytes) for each known part of [begin, end). If that is a result of
// a kernel, only what was written later is known.
template <typename Seen>
void for_each_known(std::uintptr_t begin, std::uintptr_t end, const Seen& seen) {
  const auto result = results.find(begin);
  const std::uint64_t since = result == results.end() ? 0 : result->second;
  auto at = pieces.upper_bound(begin);
  if (at != pieces.begin()) --at;
  for (; at != pieces.end() && at->first < end; ++at) {
    const std::uintptr_t low = std::max(begin, at->first);
    const std::uintptr_t high = std::min(end, at->first + at->second.bytes.size());
    if (low < high && at->second.written >= since)
      seen(low, &at->second.bytes[low - at->first], high - low);
  }
}

void read(std::uintptr_t begin, unsigned char* out, std::size_t bytes) {
  std::memset(out, 0, bytes);
  for_each_known(begin, begin + bytes,
                 [&](std::uintptr_t address, const unsigned char* contents, std::size_t size) {
                   std::memcpy(out + (address - begin), contents, size);
                 });
}

// Keeps `held` as the contents of the memory at `begin`, which must not be known. The mutex must be
// held.
void keep(std::uintptr_t begin, Bytes held) {
  pieces.emplace(begin, Piece{std::move(held), ++now});
}

// Returns how many bytes of [begin, end) are known.
std::size_t known_bytes(std::uintptr_t begin, std::uintptr_t end) {
  std::size_t known = 0;
  for_each_known(begin, end, [&](auto, auto, std::size_t size) { known += size; });
  return known;
}

thread_local int unknown_ones = 0;

}  // namespace

void read_unknown_ones(int count) { unknown_ones = count; }

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const bool to_device = find(to).has_value(), from_device = find(from).has_value();
  if (!to_device && !from_device) {
    std::memmove(to, from, bytes);
    return;
  }
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  const std::lock_guard lock(contents_mutex);
  if (!to_device) {
    read(source, static_cast<unsigned char*>(to), bytes);
    if (bytes == 1 && unknown_ones > 0 && known_bytes(source, source + 1) == 0) {
      *static_cast<unsigned char*>(to) = 1;
      --unknown_ones;
    }
    return;
  }
  Bytes kept;
  if (bytes <= kKeptBytes) {
    if (!from_device) {
      const auto* begin = static_cast<const unsigned char*>(from);
      kept.assign(begin, begin + bytes);
    } else if (known_bytes(source, source + bytes) > 0) {
      kept.resize(bytes);
      read(source, kept.data(), bytes);
    }
  }
  cut_out(target, target + bytes);
  if (!kept.empty()) keep(target, std::move(kept));
}

bool is_known(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(contents_mutex);
  return known_bytes(begin, begin + bytes) == bytes;
}

bool copy_known(void* to, const void* from, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  const std::lock_guard lock(contents_mutex);
  if (known_bytes(begin, begin + bytes) < bytes) return false;
  read(begin, static_cast<unsigned char*>(to), bytes);
  return true;
}

void fill(void* to, unsigned char value, std::size_t bytes) {
  if (bytes == 0) return;
  if (!find(to)) {
    std::memset(to, value, bytes);
    return;
  }
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const std::lock_guard lock(contents_mutex);
  cut_out(target, target + bytes);
  if (bytes <= kKeptBytes) keep(target, Bytes(bytes, value));
}

void keep_contents(const void* address, std::size_t bytes, const void* contents) {
  const auto target = reinterpret_cast<std::uintptr_t>(address);
  const auto* begin = static_cast<const unsigned char*>(contents);
  const std::lock_guard lock(contents_mutex);
  cut_out(target, target + bytes);
  keep(target, Bytes(begin, begin + bytes));
}

void forget_contents(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(contents_mutex);
  cut_out(begin, begin + bytes);
  results.erase(results.lower_bound(begin), results.lower_bound(begin + bytes));
}

void forget_result(const void* address) {
  if (address == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(contents_mutex);
  cut_out(begin, std::max(begin + kLeastAllocation, end_of_piece_at(begin)));
  results[begin] = ++now;
}

}  // namespace headroom::virtual_gpu
