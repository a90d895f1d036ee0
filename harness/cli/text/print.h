// What commands print for people. Names from files and processes are shown by a terminal, never
// obeyed: see printable_lines. One that belongs into one line goes through printable besides.
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
