// A suite says what to run: claims by id and matrices of cells. Read from bench/suites/*.toml,
// whose README describes every key.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/experiment.h"

namespace headroom {

// Values from `-a axis=value` that replace a suite's own on that axis, in the given order.
using AxisOverrides = std::map<std::string, std::vector<std::string>>;

struct Suite {
  std::string name;
  std::string description;
  std::vector<std::string> claims;  // ids
  // Device classes and scenarios whose experiments of claims are left out, because they take too
  // long here.
  std::vector<std::string> leave_out;
  // Most pairs that an experiment may take where the pilot is noisy; 0: no more than the pilot.
  int max_pairs = 0;
  // One per combination of all other axes. It compares the values of one axis, by default the
  // allocators.
  std::vector<Experiment> experiments;
};

// Throws InputError with file and line for malformed or unknown entries.
Suite read_suite(const std::filesystem::path& file, const AxisOverrides& overrides = {});

// Names of the suites in a directory, sorted.
std::vector<std::string> suite_names(const std::filesystem::path& directory);

}  // namespace headroom
