// For tests with parameters, of every suite.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace headroom {

// gtest takes letters, digits and underscores in a name.
inline std::string test_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}  // namespace headroom
