// Byte quantities and addresses: their type, parsing and formatting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

using Bytes = std::uint64_t;
using Address = std::uint64_t;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

constexpr Bytes align_up(Bytes bytes, Bytes alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}
constexpr Bytes align_down(Bytes bytes, Bytes alignment) { return bytes / alignment * alignment; }

// Parses "4GiB", "512 MiB", "1024" or "1.5GB". Throws InputError naming `where` for anything else.
Bytes parse_bytes(std::string_view text, std::string_view where);

// Formats bytes for people, as "1.50 GiB". Files hold plain integers.
std::string format_bytes(Bytes bytes);

}  // namespace headroom
