// Durations: parsed from command-line arguments, and measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace headroom {

// Parses "200ms", "0.2s", "90" (seconds), "45m" or "2h", from 1ms to 10000h. Throws InputError
// naming `where` for anything else.
std::chrono::milliseconds parse_duration(std::string_view text, std::string_view where);

using Clock = std::chrono::steady_clock;

inline std::uint64_t ns_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace headroom
