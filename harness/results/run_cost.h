// What measuring costs: the time of a run that is not training, and what recording takes of a step.
#pragma once

#include <optional>
#include <vector>

#include "harness/results/sample.h"

namespace headroom {

// Medians over the samples that computed; the share also at its largest.
struct RecordingSummary {
  double ns_per_event = 0;
  double bytes_per_event = 0;
  double share_of_step = 0;
  double largest_share_of_step = 0;
};

// Seconds, over all calls that added to a run.
struct RunCost {
  double wall_s = 0;
  double steps_s = 0;        // training steps, warm-up included
  double setup_s = 0;        // before the first step: Programs, device memory, data
  double process_s = 0;      // the rest of the samples' processes: start, evaluation, records
  double probe_s = 0;        // machine probes around samples
  double first_touch_s = 0;  // of host memory, before it is measured
  std::optional<RecordingSummary> recording;
};

// A sample whose process lived for `process_s`.
void add_sample(RunCost& cost, const Sample& sample, double process_s);
// Of two runs that became one.
void add_run(RunCost& cost, const RunCost& other);
// Nothing where no sample computed.
std::optional<RecordingSummary> summarize_recording(const std::vector<Sample>& samples);

}  // namespace headroom
