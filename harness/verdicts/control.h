// Positive controls judged: did the instrument see what was put in on purpose? One that does not
// has no right to say "no difference" of anything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/control/injection.h"
#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"

namespace headroom {

enum class Sight {
  seen,      // the 95 % interval of the effect lies above 0; exact figures differ
  missed,    // it does not
  untested,  // no result, or fewer pairs than an interval takes
};
std::string_view to_string(Sight sight);  // "seen", "missed", "not tested"

struct Control {
  const Experiment* experiment = nullptr;
  const Arm* arm = nullptr;  // the one with the effect; compared with the experiment's first
  const Metric* metric = nullptr;
  std::string injected;  // in words
  Finding finding;
  Sight sight = Sight::untested;
  std::string why;  // one sentence: what was put in, what was seen
};

// Every injected arm of every experiment that is a control. Keeps pointers into `experiments`.
std::vector<Control> judge_controls(const std::vector<Experiment>& experiments,
                                    const SampleTable& table);

struct Sensitivity {
  std::string status;  // "sensitive", "insensitive", "not tested"
  std::string why;
  Trust trust = Trust::full;
};
Sensitivity sensitivity_of(const std::vector<Control>& controls);

}  // namespace headroom
