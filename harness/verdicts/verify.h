// Turns samples into verdicts: the object `verdicts` of reports/schema.json.
#pragma once

#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/plan/experiment.h"
#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

// A/A comparisons (of two identical configurations) and how many of them raised an alarm.
struct Calibration {
  int aa_comparisons = 0;
  int false_alarms = 0;
};

struct VerifyInput {
  std::vector<Claim> claims;
  std::vector<Experiment> experiments;  // those of the suite and of the claims, in display order
  // If several have the same experiment, configuration and block, the last counts.
  std::vector<Sample> samples;
  std::vector<Addition> additions;  // added blocks, and why
  Calibration calibration;          // from earlier runs on this machine
};

// Returns what this run adds to the machine's calibration.
Calibration calibration_of(const VerifyInput& input);

// Returns a complete and valid document for any samples: a configuration that could not run says
// why.
std::string verdicts_json(const VerifyInput& input);

}  // namespace headroom
