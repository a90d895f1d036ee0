// Durations as command lines give them: one way to read them.
#pragma once

#include <chrono>
#include <string_view>

namespace headroom {

// "200ms", "0.2s", "90" (seconds), "45m", "2h"; from 1ms to 10000h. Throws InputError that names
// `where` for anything else.
std::chrono::milliseconds parse_duration(std::string_view text, std::string_view where);

}  // namespace headroom
