#include "harness/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace headroom {

Bytes parse_bytes(std::string_view text, std::string_view where) {
  static const std::map<std::string_view, double> units = {
      {"", 1},         {"b", 1},    {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30},
      {"tib", 0x1p40}, {"kb", 1e3}, {"mb", 1e6},     {"gb", 1e9},     {"tb", 1e12}};
  const std::string_view words = trimmed(text);
  const char* const last = words.data() + words.size();
  double count = 0;
  const auto [end, error] = std::from_chars(words.data(), last, count, std::chars_format::fixed);
  std::string name(trimmed({end, static_cast<std::size_t>(last - end)}));
  for (char& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto unit = units.find(name);
  // from_chars also accepts "-1", "inf", ".5" and "5.", which must be rejected.
  const bool begins_and_ends_with_digits =
      end != words.data() && std::isdigit(static_cast<unsigned char>(words.front())) != 0 &&
      end[-1] != '.';
  if (!begins_and_ends_with_digits || unit == units.end())
    throw InputError(
        fmt::format("{}: '{}' is not a number of bytes; write 4GiB, 512MiB or 1024", where, text));
  const double bytes = count * unit->second;
  if (error != std::errc() || bytes > 0x1p62)
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
