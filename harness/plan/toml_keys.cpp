#include "harness/plan/toml_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr std::string_view::size_type kMostParts = 100;

// Length of the string at the start of `text`, including quotes, terminated or not.
std::size_t string_length(std::string_view text) {
  const char quote = text.front();
  const std::string three(3, quote);
  const bool of_lines = text.starts_with(three);
  const std::string_view end = of_lines ? std::string_view(three) : text.substr(0, 1);
  for (std::size_t i = end.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.substr(i).starts_with(end)) {
      return i + end.size();
    } else if (text[i] == '\n' && !of_lines) {
      return i;
    }
  }
  return text.size();
}

}  // namespace

void check_dotted_keys(std::string_view text, const std::string& path) {
  std::size_t parts = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"' || letter == '\'') {
      i += string_length(text.substr(i)) - 1;
    } else if (letter == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
      parts = 1;
    } else if (std::string_view("=,[]{}\n").find(letter) != std::string_view::npos) {
      parts = 1;
    } else if (letter == '.' && ++parts > kMostParts) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(i), '\n');
      throw InputError(fmt::format("{}:{}: a key of more than {} parts", path, line, kMostParts));
    }
  }
}

}  // namespace headroom
