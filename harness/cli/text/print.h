// Prints the commands' text for people. printable_lines makes control characters in names from
// files and processes visible, so that the terminal does not interpret them; a name that must stay
// on one line also goes through printable.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/base/text.h"

namespace headroom::out {

// Standard output that cannot be written is an error. Standard error that cannot be written changes
// no exit code: nobody could be told.
inline void put(std::FILE* stream, std::string_view text) {
  const std::string shown = printable_lines(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stream) < shown.size() && stream != stderr)
    throw std::system_error(errno, std::generic_category());
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
