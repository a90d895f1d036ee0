// What is fuzzed: bytes of a stranger as a trace file, and as the inside of one. Read by the fuzz
// target and by the test that replays its corpus.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// The first thing wrong with how `bytes` were taken, in words; "" when they were refused with
// InputError or were read, are the same after they are written and read again, and make requests
// that hold together.
std::string wrong_with_reading(std::string_view bytes);

}  // namespace headroom
