// Calibration of the instrument: identical configurations must not look different too often.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"
#include "harness/verdicts/judgement.h"
#include "harness/verdicts/verify.h"

namespace headroom {

inline constexpr int kComparisonsToCalibrate = 40;

// Two configurations with the same cell, compared by step time.
struct IdenticalArms {
  const Experiment* experiment = nullptr;
  std::string first;
  std::string second;
  Finding finding;
  bool alarm = false;  // false alarm: the 95 % interval excludes 0
  std::string why;     // one sentence
};

// Compares identical configurations that have enough pairs for an interval. Keeps pointers into
// `experiments`.
std::vector<IdenticalArms> compare_identical_arms(const std::vector<Experiment>& experiments,
                                                  const SampleTable& table);
Calibration count_alarms(const std::vector<IdenticalArms>& comparisons);

struct CalibrationState {
  Calibration counted;
  std::string status;  // "not yet calibrated", "calibrated", "out of calibration"
  std::string why;
  Reliability reliability = Reliability::full;
  std::optional<double> false_alarm_rate;
};

// Out of calibration means that this many alarms have a probability below 1 % at the nominal rate
// of 5 %.
CalibrationState state_of(const Calibration& counted);

}  // namespace headroom
