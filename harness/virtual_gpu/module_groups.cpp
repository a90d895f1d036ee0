#include "harness/virtual_gpu/module_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace headroom::virtual_gpu {
namespace {

constexpr double kCovered = 0.9;

// Modules whose patterns begin with the same path.
struct Group {
  Bytes bytes = 0;
  std::vector<const ModuleShare*> modules;

  void add(const ModuleShare& module) {
    bytes += module.bytes;
    modules.push_back(&module);
  }
};

// The length of the path's beginning up to the separator behind `length`, or of the whole path.
std::size_t next_end(const std::string& path, std::size_t length) {
  const char separator = path.find('/') == std::string::npos ? '.' : '/';
  return std::min(path.find(separator, length + 1), path.size());
}

bool has_one_pattern(const Group& group) {
  return std::all_of(group.modules.begin(), group.modules.end(), [&](const ModuleShare* module) {
    return module->pattern == group.modules.front()->pattern;
  });
}

// The longest path that contains all of the modules.
std::string common_path(const Group& group) {
  const std::string& first = group.modules.front()->pattern;
  std::size_t length = 0;
  while (length < first.size()) {
    const std::size_t end = next_end(first, length);
    const bool is_common =
        std::all_of(group.modules.begin(), group.modules.end(), [&](const ModuleShare* module) {
          return module->pattern.compare(0, end, first, 0, end) == 0 &&
                 next_end(module->pattern, length) == end;
        });
    if (!is_common) break;
    length = end;
  }
  return first.substr(0, length);
}

void sort(std::vector<Group>& groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
}

// Returns all groups, with the one at `position` divided into those one step further down.
std::vector<Group> divided(const std::vector<Group>& groups, std::size_t position) {
  const Group& group = groups[position];
  const std::size_t length = common_path(group).size();
  std::map<std::string, Group> parts;
  for (const ModuleShare* module : group.modules)
    parts[module->pattern.substr(0, next_end(module->pattern, length))].add(*module);
  std::vector<Group> result = groups;
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(position));
  for (auto& [_, part] : parts) result.push_back(std::move(part));
  sort(result);
  return result;
}

bool tell_most(const std::vector<Group>& groups, std::size_t most) {
  Bytes shown = 0, all = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    all += groups[i].bytes;
    if (i < most) shown += groups[i].bytes;
  }
  return static_cast<double>(shown) >= kCovered * static_cast<double>(all);
}

std::string name_of(const Group& group) {
  const std::size_t count = group.modules.size();
  if (count == 1) return group.modules.front()->name;
  return fmt::format("{}  ({} {})", common_path(group), count,
                     has_one_pattern(group) ? "alike" : "modules");
}

}  // namespace

std::vector<Share> module_groups(const std::vector<ModuleShare>& modules, std::size_t most) {
  if (modules.empty()) return {};
  Group all;
  for (const ModuleShare& module : modules) all.add(module);
  std::vector<Group> groups = {all};
  if (!has_one_pattern(all)) groups = divided(groups, 0);
  bool is_divided = true;
  while (is_divided) {
    is_divided = false;
    for (std::size_t i = 0; i < std::min(groups.size(), most) && !is_divided; ++i) {
      if (has_one_pattern(groups[i])) continue;
      std::vector<Group> further = divided(groups, i);
      if (!tell_most(further, most)) continue;
      groups = std::move(further);
      is_divided = true;
    }
  }
  std::vector<Share> rows;
  for (const Group& group : groups) rows.push_back({name_of(group), group.bytes});
  return rows;
}

}  // namespace headroom::virtual_gpu
