// Judges positive controls: did the instrument detect the injected effect? If it did not, a verdict
// of "no difference" elsewhere would mean nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/control/injection.h"
#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"

namespace headroom {

enum class Detection {
  detected,  // the 95 % interval of the effect lies above 0; exact figures differ
  missed,    // the interval does not exclude 0
  untested,  // no result, or too few pairs for an interval
};
std::string_view to_string(Detection detection);  // "seen", "missed", "not tested"

struct Control {
  const Experiment* experiment = nullptr;
  const Arm* arm = nullptr;  // has the effect; compared with the experiment's first configuration
  const Metric* metric = nullptr;
  std::string injected;  // description of the injected effect
  Finding finding;
  Detection detection = Detection::untested;
  std::string why;  // one sentence: what was injected and what was detected
};

// Judges every configuration with an injected effect of every control experiment. Keeps pointers
// into `experiments`.
std::vector<Control> judge_controls(const std::vector<Experiment>& experiments,
                                    const SampleTable& table);

struct Sensitivity {
  std::string status;  // "sensitive", "insensitive", "not tested"
  std::string why;
  Reliability reliability = Reliability::full;
};
Sensitivity sensitivity_of(const std::vector<Control>& controls);

}  // namespace headroom
