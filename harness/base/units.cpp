#include "harness/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <regex>

#include "harness/base/error.h"

namespace headroom {

Bytes parse_bytes(std::string_view text, std::string_view where) {
  static const std::regex pattern(R"(\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B|B)?\s*)");
  static const std::map<std::string, double> units = {
      {"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
      {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
  const std::string subject(text);
  std::smatch match;
  if (!std::regex_match(subject, match, pattern))
    throw InputError(
        fmt::format("{}: '{}' is not a number of bytes; write 4GiB, 512MiB or 1024", where, text));
  const double bytes = std::stod(match[1]) * units.at(match[2]);
  if (bytes > 0x1p62)
    throw InputError(fmt::format("{}: '{}' is more than any device has", where, text));
  return static_cast<Bytes>(std::llround(bytes));
}

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

}  // namespace headroom
