#include "harness/cli/watch_units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/units.h"

namespace headroom {

std::chrono::milliseconds parse_interval(const std::string& text, const std::string& where) {
  static const std::map<std::string, double> units = {{"ms", 1}, {"s", 1000}};
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto unit = units.find(end);
  constexpr double kMost = 3'600'000;
  if (error != std::errc() || unit == units.end() || !(count * unit->second >= 1) ||
      count * unit->second > kMost)
    throw InputError(
        fmt::format("{}: '{}' is no interval from 1ms to 3600s; write 100ms or 2s", where, text));
  return std::chrono::milliseconds{std::llround(count * unit->second)};
}

double parse_bytes_per_minute(const std::string& text, const std::string& where) {
  static const std::map<std::string, double> per_minute = {{"s", 60}, {"min", 1}, {"h", 1.0 / 60}};
  const std::size_t slash = text.find('/');
  const auto unit =
      per_minute.find(slash == std::string::npos ? std::string{} : text.substr(slash + 1));
  if (unit == per_minute.end())
    throw InputError(
        fmt::format("{}: '{}' is no rate; write 1MiB/min, 500KiB/s or 2GiB/h", where, text));
  return static_cast<double>(parse_bytes(text.substr(0, slash), where)) * unit->second;
}

}  // namespace headroom
