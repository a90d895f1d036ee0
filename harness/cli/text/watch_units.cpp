#include "harness/cli/text/watch_units.h"

#include <fmt/format.h>

#include <map>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/base/units.h"

namespace headroom {

std::chrono::milliseconds parse_interval(const std::string& text, const std::string& where) {
  const std::chrono::milliseconds interval = parse_duration(text, where);
  if (interval > std::chrono::hours{1})
    throw InputError(fmt::format("{}: '{}' is more than an hour; write 100ms or 2s", where, text));
  return interval;
}

double parse_bytes_per_minute(const std::string& text, const std::string& where) {
  static const std::map<std::string, double> per_minute = {{"s", 60}, {"min", 1}, {"h", 1.0 / 60}};
  const std::size_t slash = text.find('/');
  const auto unit =
      per_minute.find(slash == std::string::npos ? std::string{} : text.substr(slash + 1));
  if (unit == per_minute.end())
    throw InputError(
        fmt::format("{}: '{}' is not a rate; write 1MiB/min, 500KiB/s or 2GiB/h", where, text));
  return static_cast<double>(parse_bytes(text.substr(0, slash), where)) * unit->second;
}

}  // namespace headroom
