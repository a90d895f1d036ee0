#include "harness/evidence/compare_peaks.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace headroom {
namespace {

using Names = std::map<std::string, Bytes>;

// A name such as "model.py:42 forward": the place without the number, and the number.
struct PlaceLine {
  std::string function;  // "model.py: forward"
  long number = 0;
};

std::optional<PlaceLine> line_of_place(const std::string& name) {
  for (std::size_t colon = name.rfind(':'); colon != std::string::npos && colon > 0;
       colon = name.rfind(':', colon - 1)) {
    std::size_t end = colon + 1;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    const std::size_t digits = end - colon - 1;
    if (digits == 0 || digits > 9) continue;
    return PlaceLine{.function = name.substr(0, colon + 1) + name.substr(end),
                     .number = std::stol(name.substr(colon + 1, digits))};
  }
  return std::nullopt;
}

struct Line {
  long number = 0;
  std::string name;
  Bytes bytes = 0;
};
using Function = std::vector<Line>;  // by number
using Pair = std::pair<const Line*, const Line*>;

std::map<std::string, Function> functions_of(const Names& names) {
  std::map<std::string, Function> functions;
  for (const auto& [name, bytes] : names)
    if (const auto place = line_of_place(name))
      functions[place->function].push_back({place->number, name, bytes});
  for (auto& [name, lines] : functions)
    std::sort(lines.begin(), lines.end(),
              [](const Line& a, const Line& b) { return a.number < b.number; });
  return functions;
}

bool has_same_numbers(const Function& before, const Function& now) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(),
                    [](const Line& a, const Line& b) { return a.number == b.number; });
}

// The longest common sequence of lines with equal bytes.
std::vector<std::pair<std::size_t, std::size_t>> common(const Function& before,
                                                        const Function& now) {
  std::vector<std::vector<std::size_t>> longest(before.size() + 1,
                                                std::vector<std::size_t>(now.size() + 1, 0));
  for (std::size_t i = before.size(); i-- > 0;)
    for (std::size_t j = now.size(); j-- > 0;)
      longest[i][j] = before[i].bytes == now[j].bytes
                          ? longest[i + 1][j + 1] + 1
                          : std::max(longest[i + 1][j], longest[i][j + 1]);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0, j = 0; i < before.size() && j < now.size();) {
    if (before[i].bytes == now[j].bytes)
      pairs.emplace_back(i++, j++);
    else
      longest[i + 1][j] >= longest[i][j + 1] ? ++i : ++j;
  }
  return pairs;
}

// Lines between two common ones are the same lines if there are as many before as now.
std::vector<Pair> match(const Function& before, const Function& now) {
  constexpr std::size_t kMostPairs = 4'000'000;
  std::vector<Pair> matched;
  if (has_same_numbers(before, now)) {
    for (std::size_t i = 0; i < now.size(); ++i) matched.emplace_back(&before[i], &now[i]);
    return matched;
  }
  if (before.size() * now.size() > kMostPairs) return matched;
  auto anchors = common(before, now);
  anchors.emplace_back(before.size(), now.size());
  std::size_t i = 0, j = 0;
  for (const auto& [anchor_before, anchor_now] : anchors) {
    if (anchor_before - i == anchor_now - j)
      for (; i < anchor_before; ++i, ++j) matched.emplace_back(&before[i], &now[j]);
    if (anchor_before < before.size())
      matched.emplace_back(&before[anchor_before], &now[anchor_now]);
    i = anchor_before + 1;
    j = anchor_now + 1;
  }
  return matched;
}

// Later name → earlier name, of the lines of functions that both have. Other names stand for
// themselves.
std::map<std::string, std::string> earlier_names(const Names& before, const Names& now) {
  std::map<std::string, std::string> earlier;
  const auto functions_before = functions_of(before);
  for (const auto& [function, lines] : functions_of(now)) {
    const auto found = functions_before.find(function);
    if (found == functions_before.end()) continue;
    for (const auto& [line_before, line_now] : match(found->second, lines))
      earlier[line_now->name] = line_before->name;
  }
  return earlier;
}

void add_parts(PeakChange& change, const std::string& kind, const Names& before, const Names& now) {
  const auto earlier = earlier_names(before, now);
  std::set<std::string> taken;
  for (const auto& [later, name] : earlier) taken.insert(name);
  const auto add = [&](const std::string& name, const std::string& name_before, Bytes bytes_before,
                       Bytes bytes_now) {
    if (bytes_before == bytes_now)
      ++change.same_parts;
    else
      change.parts.push_back(
          {kind, name, name == name_before ? "" : name_before, {bytes_before, bytes_now}});
  };
  std::set<std::string> seen;
  for (const auto& [name, bytes] : now) {
    const auto moved = earlier.find(name);
    const std::string& name_before = moved == earlier.end() ? name : moved->second;
    // A line number that both have may stand for different lines.
    const auto found =
        moved == earlier.end() && taken.contains(name) ? before.end() : before.find(name_before);
    if (found != before.end()) seen.insert(name_before);
    add(name, found == before.end() ? name : name_before, found == before.end() ? 0 : found->second,
        bytes);
  }
  for (const auto& [name, bytes] : before)
    if (!seen.contains(name)) add(name, name, bytes, 0);
}

std::optional<PeakChange::Held> held(const std::optional<Bytes>& before,
                                     const std::optional<Bytes>& now) {
  if (!before || !now) return std::nullopt;
  return PeakChange::Held{*before, *now};
}

std::int64_t growth(const PeakChange::Held& held) {
  return static_cast<std::int64_t>(held.now - held.before);
}

}  // namespace

PeakChange::Direction PeakChange::direction() const {
  bool more = false, less = false;
  for (const auto& figure : {allocated, reserved}) {
    if (!figure) continue;
    more = more || figure->now > figure->before;
    less = less || figure->now < figure->before;
  }
  if (more && less) return Direction::mixed;
  return more ? Direction::grew : less ? Direction::shrank : Direction::same;
}

bool PeakChange::grew() const {
  return direction() == Direction::grew || direction() == Direction::mixed;
}

PeakChange compare_peaks(const PeakMemory& before, const PeakMemory& now) {
  PeakChange change{.allocated = held(before.allocated, now.allocated),
                    .reserved = held(before.reserved, now.reserved),
                    .parts = {}};
  // A kind that only one of the two runs has cannot be compared.
  for (const auto& [kind, names] : now.parts) {
    const auto found = before.parts.find(kind);
    if (found != before.parts.end()) add_parts(change, kind, found->second, names);
  }
  std::stable_sort(change.parts.begin(), change.parts.end(),
                   [](const auto& a, const auto& b) { return growth(a.held) > growth(b.held); });
  return change;
}

}  // namespace headroom
