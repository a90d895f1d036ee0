// `--filter 'workload=resnet*,allocator=bfc*'`: which part of a suite to run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/plan/experiment.h"

namespace headroom {

class Filter {
 public:
  // Clauses key=glob, joined by commas; all must hold. Keys: the axes of a cell, `claim`,
  // `experiment` and `arm`. A glob without parentheses matches the name alone.
  // Throws InputError for unknown keys and clauses of another form.
  static Filter parse(const std::string& text);
  // Adds the clauses of another one.
  void add(Filter other);

  // The arms that match, in experiments that still have one.
  std::vector<Experiment> select(const std::vector<Experiment>& experiments) const;

 private:
  bool matches(const Experiment& experiment, const Arm& arm) const;

  std::vector<std::pair<std::string, std::string>> clauses_;
};

}  // namespace headroom
