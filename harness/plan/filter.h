// `--filter 'workload=resnet*,allocator=bfc*'` selects a part of a suite.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/plan/experiment.h"

namespace headroom {

class Filter {
 public:
  // Parses clauses key=glob, joined by commas, all of which must match. Keys are the axes of a
  // cell, `claim`, `experiment` and `arm`. A glob without parentheses matches the name alone.
  // Throws InputError for unknown keys and malformed clauses.
  static Filter parse(const std::string& text);
  // Adds the clauses of `other`.
  void add(Filter other);

  // Returns the matching configurations; experiments without one are left out.
  std::vector<Experiment> select(const std::vector<Experiment>& experiments) const;

 private:
  bool matches(const Experiment& experiment, const Arm& arm) const;

  std::vector<std::pair<std::string, std::string>> clauses_;
};

}  // namespace headroom
