#include "harness/base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "harness/base/error.h"

namespace headroom {

std::chrono::milliseconds parse_duration(std::string_view text, std::string_view where) {
  static const std::map<std::string_view, double> milliseconds = {
      {"ms", 1}, {"", 1e3}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}};
  constexpr double kMost = 10'000 * 3600e3;
  double count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count, std::chars_format::fixed);
  const auto unit = milliseconds.find(std::string_view(end, last));
  const double duration = unit == milliseconds.end() ? 0 : count * unit->second;
  if (error != std::errc() || !(duration >= 1 && duration <= kMost))  // false for nan, too
    throw InputError(
        fmt::format("{}: '{}' is not a duration from 1ms to 10000h; write 200ms, 0.5s, 45m or 2h",
                    where, text));
  return std::chrono::milliseconds{std::llround(duration)};
}

}  // namespace headroom
