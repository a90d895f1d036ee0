// A suite says what to run: claims by id and matrices of cells. Read from bench/suites/*.toml,
// whose README describes every key.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/experiment.h"

namespace headroom {

// `-a axis=value`: values that replace a suite's own on that axis, in the order given.
using AxisOverrides = std::map<std::string, std::vector<std::string>>;

struct Suite {
  std::string name;
  std::string description;
  std::vector<std::string> claims;  // ids
  int max_pairs = 0;                // to which the noise of a pilot may raise it; 0: no further
  // One per combination of workload, device and the other axes; the allocators are its arms.
  std::vector<Experiment> experiments;
};

// Throws InputError with file and line for anything malformed or unknown.
Suite read_suite(const std::filesystem::path& file, const AxisOverrides& overrides = {});

// Names of the suites in a directory, sorted.
std::vector<std::string> suite_names(const std::filesystem::path& directory);

}  // namespace headroom
