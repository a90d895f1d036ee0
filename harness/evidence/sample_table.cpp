#include "harness/evidence/sample_table.h"

#include <algorithm>
#include <cstdint>

#include "harness/device/traits.h"

namespace headroom {

bool crowded(const Sample& sample) {
  std::uint64_t steps_ns = 0;
  for (const std::uint64_t step : sample.step_time_ns) steps_ns += step;
  return static_cast<double>(sample.cpu_wait_ns.value_or(0)) >
         kCrowdedAbove * static_cast<double>(steps_ns);
}

std::pair<double, double> probes_of(const Sample& sample) {
  if (traits_of(sample.cell.device).has_driver) return {0, 0};
  return std::minmax(sample.probe_before_gflops, sample.probe_after_gflops);
}

SampleTable::SampleTable(const std::vector<Sample>& samples,
                         const std::vector<Addition>& additions) {
  // Only these additions count as looks, because which blocks failed says nothing about how the
  // others compare.
  for (const Addition& addition : additions)
    if (addition.reason == AddedFor::inconclusive) ++looks_[addition.experiment];
  for (const Sample& sample : samples) {
    samples_[{sample.experiment, sample.arm}][sample.block] = &sample;
    best_probe_ = std::max(best_probe_, probes_of(sample).second);
  }
}

const SampleTable::ByBlock& SampleTable::of(const std::string& experiment,
                                            const std::string& arm) const {
  static const ByBlock none;
  const auto found = samples_.find({experiment, arm});
  return found == samples_.end() ? none : found->second;
}

bool SampleTable::disturbed(const Sample& sample) const {
  const auto [slower, faster] = probes_of(sample);
  const double limit = kDisturbedBelow * best_probe_;
  // A probe that was not taken counts as 0.
  const double slowest = slower > 0 ? slower : faster;
  return (slowest > 0 && slowest < limit) || crowded(sample);
}

int SampleTable::looks(const std::string& experiment) const {
  const auto found = looks_.find(experiment);
  return found == looks_.end() ? 0 : found->second;
}

}  // namespace headroom
