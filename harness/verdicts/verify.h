// From samples to verdicts: the object `verdicts` of reports/schema.json.
#pragma once

#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/plan/experiment.h"
#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

// A/A comparisons (two arms that are the same cell) and how many of them raised an alarm.
struct Calibration {
  int aa_comparisons = 0;
  int false_alarms = 0;
};

struct VerifyInput {
  std::vector<Claim> claims;
  std::vector<Experiment> experiments;  // the suite's own and the claims', in the order to show
  std::vector<Sample> samples;          // of several with one experiment, arm, block: the last
  std::vector<Addition> additions;      // of blocks, after a look at the results
  Calibration calibration;              // accumulated on this machine by earlier runs
};

// What this run adds to the machine's calibration.
Calibration calibration_of(const VerifyInput& input);

// Whole and valid whatever the samples are: an arm that could not run says why.
std::string verdicts_json(const VerifyInput& input);

}  // namespace headroom
