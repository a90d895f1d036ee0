// The fuzzed function: untrusted bytes read as a trace file, and as the inside of one. Shared by
// the fuzz target and by the test that replays its corpus.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// Describes the first error in how `bytes` were handled. Returns "" when they were refused with
// InputError, or were read, survive a round trip through writing and reading, and give consistent
// requests.
std::string wrong_with_reading(std::string_view bytes);

}  // namespace headroom
