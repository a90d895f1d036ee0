#include "harness/plan/filter.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"

namespace headroom {
namespace {

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> result = axis_names();
    result.insert(result.end(), {"arm", "claim", "experiment"});
    return result;
  }();
  return keys;
}

bool starts_with_key(std::string_view text) {
  const std::string_view key = text.substr(0, text.find('='));
  return key.size() < text.size() &&
         std::find(known_keys().begin(), known_keys().end(), key) != known_keys().end();
}

// Splits at commas outside parentheses, and also at a comma before a known key, because a glob may
// leave a parenthesis open.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> clauses(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && (depth == 0 || starts_with_key(std::string_view(text).substr(i + 1)))) {
      clauses.emplace_back();
      depth = 0;
    } else {
      clauses.back().push_back(text[i]);
    }
  }
  return clauses;
}

bool glob_matches(const std::string& glob, const std::string& value) {
  if (fnmatch(glob.c_str(), value.c_str(), 0) == 0) return true;
  const std::string name = value.substr(0, value.find('('));
  return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

Filter Filter::parse(const std::string& text) {
  Filter filter;
  for (const std::string& clause : split(text)) {
    const std::size_t equals = clause.find('=');
    if (equals == std::string::npos || equals + 1 == clause.size())
      throw InputError(fmt::format(
          "--filter '{}': '{}' is not of the form key=glob, as in workload=resnet*", text, clause));
    const std::string key = clause.substr(0, equals);
    if (!starts_with_key(clause)) throw_unknown_name("--filter key", key, known_keys());
    filter.clauses_.emplace_back(key, clause.substr(equals + 1));
  }
  return filter;
}

void Filter::add(Filter other) {
  std::move(other.clauses_.begin(), other.clauses_.end(), std::back_inserter(clauses_));
}

bool Filter::matches(const Experiment& experiment, const Arm& arm) const {
  return std::all_of(clauses_.begin(), clauses_.end(), [&](const auto& clause) {
    const auto& [key, glob] = clause;
    if (key == "claim") return glob_matches(glob, experiment.origin);
    if (key == "experiment") return glob_matches(glob, experiment.id);
    if (key == "arm") return glob_matches(glob, arm.name);
    return glob_matches(glob, axis_value(arm.cell, key));
  });
}

std::vector<Experiment> Filter::select(const std::vector<Experiment>& experiments) const {
  std::vector<Experiment> selected;
  for (Experiment experiment : experiments) {
    std::erase_if(experiment.arms, [&](const Arm& arm) { return !matches(experiment, arm); });
    if (!experiment.arms.empty()) selected.push_back(std::move(experiment));
  }
  return selected;
}

}  // namespace headroom
