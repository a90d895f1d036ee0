#include "harness/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace headroom {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  // in bytes; 0: not UTF-8
};

// Decodes the first character of `text`. Overlong forms, surrogates and truncated characters are
// invalid.
Character first_character(std::string_view text) {
  static constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {.code = lead, .length = 1};
  const std::size_t length = lead >> 5U == 6 ? 2 : lead >> 4U == 14 ? 3 : lead >> 3U == 30 ? 4 : 0;
  if (length == 0 || text.size() < length) return {};
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if (next >> 6U != 2) return {};
    code = code << 6U | (next & 0x3FU);
  }
  const bool sound = code >= kSmallest[length] && code < 0x110000 && code >> 11U != 0x1B;
  return sound ? Character{.code = code, .length = length} : Character{};
}

bool is_shown(std::uint32_t code) {
  const auto in = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  const bool control = code < 0x20 || in(0x7F, 0x9F);
  // Direction marks and overrides, and line and paragraph separators.
  const bool reorders =
      code == 0x61C || in(0x200E, 0x200F) || in(0x2028, 0x202E) || in(0x2066, 0x2069);
  return !control && !reorders;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t length = std::max<std::size_t>(character.length, 1);
    const std::string_view bytes = text.substr(0, length);
    if (kept.find(bytes) != std::string_view::npos ||
        (character.length > 0 && is_shown(character.code)))
      result += bytes;
    else
      for (const char byte : bytes)
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::string printable(std::string_view name) { return escaped(name, ""); }

bool is_file_name(std::string_view text) {
  return !text.empty() && text.size() <= 200 && text != "." && text != ".." &&
         text.find('/') == std::string_view::npos && printable(text) == text;
}

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto character_from = [text](std::size_t at) {
    while (at < text.size() && static_cast<unsigned char>(text[at]) >> 6U == 2) ++at;
    return at;
  };
  const std::size_t begin = character_from(most / 2);
  const std::size_t end = character_from(text.size() - most / 2);
  return fmt::format("{} [{} bytes left out] {}", text.substr(0, begin), end - begin,
                     text.substr(end));
}

}  // namespace headroom
