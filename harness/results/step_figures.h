// Figures of a sample's steps. They are absent if the sample did not get that far, and times also
// if its device computes nothing. Steady steps are those after warm-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/results/sample.h"

namespace headroom {

// Whether step times mean anything: devices that compute nothing have none.
bool has_time(const Sample& sample);

// All times are in nanoseconds. Times of the steady steps, in order:
std::vector<double> step_times(const Sample& sample);
// The same without making the batch or waiting for it.
std::vector<double> work_times(const Sample& sample);

// The median hardly changes if another process disturbs a few steps.
std::optional<double> median_if_any(std::vector<double> values);
// The median of the log ratios of steps with the same number, treatment over baseline.
std::optional<double> median_log_ratio(const std::vector<double>& baseline,
                                       const std::vector<double>& treatment);

std::optional<double> mean_step_time(const Sample& sample);
// The smallest time that at least `share` of the steady steps do not exceed.
std::optional<double> step_time_quantile(const Sample& sample, double share);
std::optional<double> first_steps_time(const Sample& sample, std::size_t steps);  // their sum
std::optional<double> warmup_time(const Sample& sample);

// `per_step` and `after_step` have one value per step, warm-up included.
std::optional<double> mean_per_steady_step(const Sample& sample,
                                           const std::vector<std::uint64_t>& per_step);
// Bytes per step: the slope of the least-squares line. It is exact if the bytes lie on a line.
std::optional<double> growth_per_steady_step(const Sample& sample,
                                             const std::vector<Bytes>& after_step);

}  // namespace headroom
