// Units that only headroom watch reads from its command line.
#pragma once

#include <chrono>
#include <string>

namespace headroom {

// Parses a duration of at most an hour. Throws InputError naming `where`.
std::chrono::milliseconds parse_interval(const std::string& text, const std::string& where);

// "1MiB/min", "500KiB/s", "2GiB/h" → bytes per minute. Throws InputError naming `where`.
double parse_bytes_per_minute(const std::string& text, const std::string& where);

}  // namespace headroom
