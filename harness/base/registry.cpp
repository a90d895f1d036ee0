#include "harness/base/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr std::size_t kMostNamed = 50, kNearestNamed = 5;

// Levenshtein distance, computed row by row.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view name, std::vector<std::string> known) {
  std::stable_sort(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  return known;
}

void throw_unknown_name(std::string_view kind, std::string_view name,
                        const std::vector<std::string>& known) {
  if (known.empty()) throw InputError(fmt::format("unknown {} '{}'; there are none", kind, name));
  const std::vector<std::string> nearest = nearest_names(name, known);
  // A history may hold hundreds of cells, too many to list in one message.
  const bool many = known.size() > kMostNamed;
  const std::vector<std::string> shown =
      many ? std::vector<std::string>(nearest.begin(), nearest.begin() + kNearestNamed) : known;
  throw InputError(
      fmt::format("unknown {} '{}'; did you mean '{}'? Known: {}{}", kind, name, nearest.front(),
                  fmt::join(shown, ", "),
                  many ? fmt::format(" and {} more", known.size() - kNearestNamed) : ""));
}

}  // namespace headroom
