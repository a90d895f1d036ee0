// The cost of measuring: time of a run that is not spent training, and the share of a step spent
// recording.
#pragma once

#include <optional>
#include <vector>

#include "harness/results/sample.h"

namespace headroom {

// Medians over the samples that computed; for the share, also the maximum.
struct RecordingSummary {
  double ns_per_event = 0;
  double bytes_per_event = 0;
  double share_of_step = 0;
  double largest_share_of_step = 0;
};

// Durations in seconds, summed over all calls that added to a run.
struct RunCost {
  double wall_s = 0;
  double steps_s = 0;        // training steps, warm-up included
  double setup_s = 0;        // before the first step: Programs, device memory, data
  double process_s = 0;      // rest of the sample processes: start, evaluation, records
  double probe_s = 0;        // machine probes around samples
  double first_touch_s = 0;  // touching host memory before measuring it
  std::optional<RecordingSummary> recording;
};

// Adds a sample whose process lived for `process_s` seconds.
void add_sample(RunCost& cost, const Sample& sample, double process_s);
// Adds the cost of a run that was merged into this one.
void add_cost(RunCost& cost, const RunCost& other);
// Returns nothing if no sample computed.
std::optional<RecordingSummary> summarize_recording(const std::vector<Sample>& samples);

}  // namespace headroom
