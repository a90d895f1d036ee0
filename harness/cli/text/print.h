// Prints the commands' text for people. printable_lines makes control characters in names from
// files and processes visible, so that the terminal does not interpret them; a name that must stay
// on one line also goes through printable.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "harness/base/text.h"

namespace headroom::out {

inline void put(std::FILE* stream, std::string_view text) {
  fmt::print(stream, "{}", printable_lines(text));
}

template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  put(stdout, fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <typename... Arguments>
void print(std::FILE* stream, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  put(stream, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace headroom::out
