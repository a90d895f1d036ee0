#include "harness/results/run_cost.h"

#include <algorithm>
#include <numeric>

#include "harness/device/traits.h"
#include "harness/stats/median.h"

namespace headroom {
namespace {

double seconds(const std::vector<std::uint64_t>& ns, std::size_t first = 0) {
  const auto begin = ns.begin() + static_cast<std::ptrdiff_t>(std::min(first, ns.size()));
  return static_cast<double>(std::accumulate(begin, ns.end(), std::uint64_t{0})) * 1e-9;
}

}  // namespace

void add_sample(RunCost& cost, const Sample& sample, double process_s) {
  const double steps = seconds(sample.step_time_ns);
  const double setup = static_cast<double>(sample.setup_ns) * 1e-9;
  cost.steps_s += steps;
  cost.setup_s += setup;
  cost.process_s += std::max(0.0, process_s - steps - setup);
}

void add_cost(RunCost& cost, const RunCost& other) {
  cost.wall_s += other.wall_s;
  cost.steps_s += other.steps_s;
  cost.setup_s += other.setup_s;
  cost.process_s += other.process_s;
  cost.probe_s += other.probe_s;
  cost.first_touch_s += other.first_touch_s;
}

std::optional<RecordingSummary> summarize_recording(const std::vector<Sample>& samples) {
  std::vector<double> ns;
  std::vector<double> bytes;
  std::vector<double> shares;
  for (const Sample& sample : samples) {
    const RecordingCost& recording = sample.recording;
    const double steady =
        seconds(sample.step_time_ns, static_cast<std::size_t>(sample.cell.warmup_steps));
    const bool usable = sample.status == SampleStatus::ok && traits_of(sample.cell.device).timed &&
                        recording.events > 0 && recording.ns_per_event > 0 && steady > 0;
    if (!usable) continue;
    ns.push_back(recording.ns_per_event);
    bytes.push_back(static_cast<double>(recording.bytes) / static_cast<double>(recording.events));
    shares.push_back(static_cast<double>(recording.steady_events) * recording.ns_per_event * 1e-9 /
                     steady);
  }
  if (ns.empty()) return std::nullopt;
  return RecordingSummary{.ns_per_event = median_of(ns),
                          .bytes_per_event = median_of(bytes),
                          .share_of_step = median_of(shares),
                          .largest_share_of_step = *std::max_element(shares.begin(), shares.end())};
}

}  // namespace headroom
