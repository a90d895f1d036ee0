// What two runs differ in: the reasons for which their samples do not belong together, or for
// which their results may differ.
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

// Machine class (all but which machine it is), libraries, variables and build: what it is called,
// and what it is.
std::vector<std::pair<std::string, std::string>> environment_facts(const RunInfo& info);
std::vector<RunDifference> differences_of(
    const std::vector<std::pair<std::string, std::string>>& first,
    const std::vector<std::pair<std::string, std::string>>& second);
std::vector<RunDifference> environment_differences(const RunInfo& first, const RunInfo& second);

// Experiments that are in one plan and not, or not in the same form, in the other.
std::vector<std::string> plan_differences(const std::vector<Experiment>& first,
                                          const std::vector<Experiment>& second);

}  // namespace headroom
