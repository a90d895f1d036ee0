// The differences between two runs, which are reasons not to combine their samples or explain why
// their results differ.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/results/run_info.h"

namespace headroom {

struct RunDifference {
  std::string what;  // "the processor", "library onednn"
  std::string first;
  std::string second;
};

// Facts about the environment as pairs of name and value: the machine class (everything but the
// machine's identity), libraries, variables and build.
std::vector<std::pair<std::string, std::string>> environment_facts(const RunInfo& info);
std::vector<RunDifference> differences_of(
    const std::vector<std::pair<std::string, std::string>>& first,
    const std::vector<std::pair<std::string, std::string>>& second);
std::vector<RunDifference> environment_differences(const RunInfo& first, const RunInfo& second);

// Lists experiments that are in only one of the plans, or that differ between them.
std::vector<std::string> plan_differences(const std::vector<Experiment>& first,
                                          const std::vector<Experiment>& second);

}  // namespace headroom
