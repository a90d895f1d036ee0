#include "harness/results/step_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "harness/device/traits.h"
#include "harness/stats/median.h"

namespace headroom {

bool has_time(const Sample& sample) { return traits_of(sample.cell.device).timed; }

namespace {

std::size_t warmup_of(const Sample& sample) {
  return static_cast<std::size_t>(std::max(0, sample.cell.warmup_steps));
}

template <typename Number>
double sum(std::span<const Number> values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double total, Number value) {
    return total + static_cast<double>(value);
  });
}

// Returns the values after warm-up; empty if the sample did not get that far.
template <typename Number>
std::span<const Number> steady(const Sample& sample, const std::vector<Number>& per_step) {
  const std::size_t skipped = std::min(warmup_of(sample), per_step.size());
  return std::span(per_step).subspan(skipped);
}

std::span<const std::uint64_t> steady_times(const Sample& sample) {
  if (!has_time(sample)) return {};
  return steady(sample, sample.step_time_ns);
}

// Returns the slope of the least-squares line. Everything before the division is integer
// arithmetic.
std::optional<double> slope(std::span<const Bytes> bytes) {
  if (bytes.size() < 2) return std::nullopt;
  using Whole = __int128;
  const auto n = static_cast<Whole>(bytes.size());
  Whole x = 0, y = 0, xx = 0, xy = 0;
  for (Whole i = 0; i < n; ++i) {
    const Whole value = bytes[static_cast<std::size_t>(i)];
    x += i;
    y += value;
    xx += i * i;
    xy += i * value;
  }
  return static_cast<double>(n * xy - x * y) / static_cast<double>(n * xx - x * x);
}

}  // namespace

std::vector<double> step_times(const Sample& sample) {
  const auto times = steady_times(sample);
  return {times.begin(), times.end()};
}

std::vector<double> work_times(const Sample& sample) {
  const auto times = steady_times(sample);
  const auto stalls = steady(sample, sample.stall_time_ns);
  if (stalls.size() != times.size()) return {};
  std::vector<double> work;
  for (std::size_t i = 0; i < times.size(); ++i)
    work.push_back(static_cast<double>(times[i] - stalls[i]));
  return work;
}

std::optional<double> median_if_any(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return median_of(std::move(values));
}

std::optional<double> median_log_ratio(const std::vector<double>& baseline,
                                       const std::vector<double>& treatment) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(baseline.size(), treatment.size()); ++i)
    if (baseline[i] > 0 && treatment[i] > 0) ratios.push_back(std::log(treatment[i] / baseline[i]));
  return median_if_any(std::move(ratios));
}

std::optional<double> mean_step_time(const Sample& sample) {
  const auto times = steady_times(sample);
  if (times.empty()) return std::nullopt;
  return sum(times) / static_cast<double>(times.size());
}

std::optional<double> step_time_quantile(const Sample& sample, double share) {
  const auto times = steady_times(sample);
  if (times.empty()) return std::nullopt;
  std::vector<std::uint64_t> sorted(times.begin(), times.end());
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<std::size_t>(rank, 1) - 1]);
}

std::optional<double> first_steps_time(const Sample& sample, std::size_t steps) {
  if (!has_time(sample) || steps == 0 || sample.step_time_ns.size() < steps) return std::nullopt;
  return sum(std::span(std::as_const(sample.step_time_ns)).first(steps));
}

std::optional<double> mean_per_steady_step(const Sample& sample,
                                           const std::vector<std::uint64_t>& per_step) {
  const auto values = steady(sample, per_step);
  if (values.empty()) return std::nullopt;
  return sum(values) / static_cast<double>(values.size());
}

std::optional<double> warmup_time(const Sample& sample) {
  return first_steps_time(sample, warmup_of(sample));
}

std::optional<double> growth_per_steady_step(const Sample& sample,
                                             const std::vector<Bytes>& after_step) {
  return slope(steady(sample, after_step));
}

}  // namespace headroom
