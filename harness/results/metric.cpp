#include "harness/results/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "harness/base/registry.h"
#include "harness/device/traits.h"
#include "harness/plan/scenario.h"
#include "harness/stats/median.h"

namespace headroom {
namespace {

using Read = std::function<std::optional<double>(const Sample&)>;

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

// Whether step times mean anything: devices that compute nothing have none.
bool has_time(const Sample& sample) { return traits_of(sample.cell.device).timed; }

std::span<const std::uint64_t> steady_times(const Sample& sample) {
  if (!has_time(sample)) return {};
  return steady(sample, sample.step_time_ns);
}

std::optional<double> median_if_any(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return median_of(std::move(values));
}

std::vector<double> step_times(const Sample& sample) {
  const auto times = steady_times(sample);
  return {times.begin(), times.end()};
}

// Step times without making the batch or waiting for it.
std::vector<double> work_times(const Sample& sample) {
  const auto times = steady_times(sample);
  const auto stalls = steady(sample, sample.stall_time_ns);
  if (stalls.size() != times.size()) return {};
  std::vector<double> work;
  for (std::size_t i = 0; i < times.size(); ++i)
    work.push_back(static_cast<double>(times[i] - stalls[i]));
  return work;
}

// A metric of the step in the middle: a few steps that another process disturbed do not move it.
// Steps of two samples that took turns are compared one by one.
Metric middle_step(const char* name, const char* text,
                   std::vector<double> (*times_of)(const Sample&), const char* mean) {
  return {
      .name = name,
      .unit = "ns",
      .text = text,
      .value = [=](const Sample& sample) { return median_if_any(times_of(sample)); },
      .mean = mean,
      .in_turns = [=](const Sample& baseline, const Sample& treatment) -> std::optional<double> {
        if (baseline.turns.numbers.empty() || treatment.turns.numbers.empty()) return std::nullopt;
        const auto first = times_of(baseline), second = times_of(treatment);
        std::vector<double> ratios;
        for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
          if (first[i] > 0 && second[i] > 0) ratios.push_back(std::log(second[i] / first[i]));
        return median_if_any(std::move(ratios));
      }};
}

std::optional<double> mean_step_time(const Sample& sample) {
  const auto times = steady_times(sample);
  if (times.empty()) return std::nullopt;
  return sum(times) / static_cast<double>(times.size());
}

// Returns the smallest step time that at least `share` of the steps do not exceed.
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

// Returns the slope, in bytes per step, of the least-squares line. It is exact if the bytes lie on
// a line, because everything before the division is integer arithmetic.
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

struct MomentName {
  const char* name;
  const char* text;
  Bytes Moments::*field;
};
constexpr MomentName kMoments[] = {
    {"initial", "before the first step", &Moments::initial},
    {"after_step_1", "after the first step", &Moments::after_step_1},
    {"warmup_peak", "at the peak of warm-up", &Moments::warmup_peak},
    {"steady_peak", "at the peak after warm-up", &Moments::steady_peak},
    {"overall_peak", "at the overall peak", &Moments::overall_peak},
};

// Returns the value that a scenario's program reported under the name of a training metric. A
// framework's own byte counts have the same meaning as Headroom's, so they share the name.
std::optional<double> reported(const Sample& sample, const std::string& name) {
  const auto found = sample.figures.find(name);
  if (trains(sample.cell) || found == sample.figures.end()) return std::nullopt;
  return found->second;
}

void add_moments(std::vector<Metric>& table, const std::string& kind, Metric::Class on_device,
                 const std::function<std::optional<Moments>(const Sample&)>& moments_of) {
  const bool by_rules = kind == "allocated" || kind == "reserved";
  const auto depends_on = by_rules ? DependsOn::allocator : DependsOn::device;
  for (const MomentName& moment : kMoments) {
    const std::string name = fmt::format("{}_bytes.{}", kind, moment.name);
    table.push_back({name, "B", fmt::format("{} bytes {}", kind, moment.text), on_device,
                     Metric::Better::less,
                     [=, field = moment.field](const Sample& sample) -> std::optional<double> {
                       if (const auto figure = reported(sample, name)) return figure;
                       const auto moments = moments_of(sample);
                       // 0 means that the run did not get that far, since weights alone take more.
                       if (!moments || (*moments).*field == 0) return std::nullopt;
                       return static_cast<double>((*moments).*field);
                     },
                     depends_on});
  }
}

// Reads a figure of the ledger; absent if the ledger is.
Read ledger(std::function<double(const Ledger&)> figure) {
  return [figure = std::move(figure)](const Sample& sample) -> std::optional<double> {
    if (!sample.ledger_available) return std::nullopt;
    return figure(sample.ledger);
  };
}

Read timed(std::function<double(const Sample&)> figure) {
  return [figure = std::move(figure)](const Sample& sample) -> std::optional<double> {
    if (!has_time(sample)) return std::nullopt;
    return figure(sample);
  };
}

// Adds figures that only some training runs record, under their names.
void add_figures_of_training(std::vector<Metric>& table) {
  const auto add = [&](const char* name, const char* text) {
    table.push_back({name, "B", text, Metric::Class::exact, Metric::Better::less,
                     [name](const Sample& sample) -> std::optional<double> {
                       const auto found = sample.figures.find(name);
                       if (!trains(sample.cell) || found == sample.figures.end())
                         return std::nullopt;
                       return found->second;
                     }});
  };
  add("offloaded_bytes_per_step", "bytes copied to memory of the host, and back, per step");
  add("offload_peak_bytes", "most offloaded bytes in memory of the host at a time");
  add("offload_reserved_bytes", "memory of the host taken for offloaded bytes");
  add("captured_pool_bytes", "memory that captured steps keep for good");
}

// Adds the figures of scenarios, under their names.
void add_scenarios(std::vector<Metric>& table) {
  for (const auto& [kind, scenario] : Registry<ScenarioKind>::instance().all())
    for (const ScenarioFigure& figure : scenario.figures)
      table.push_back({fmt::format("{}.{}", kind, figure.name), figure.unit, figure.text,
                       figure.exact ? Metric::Class::exact : Metric::Class::noisy,
                       figure.more_is_better ? Metric::Better::more : Metric::Better::less,
                       [name = figure.name,
                        kind = std::string(kind)](const Sample& s) -> std::optional<double> {
                         if (s.cell.scenario.name() != kind) return std::nullopt;
                         const auto found = s.figures.find(name);
                         if (found == s.figures.end()) return std::nullopt;
                         return found->second;
                       },
                       figure.depends_on});
}

std::vector<Metric> make_metrics() {
  using enum Metric::Class;
  using enum Metric::Better;
  std::vector<Metric> table;
  const auto from_ledger = [](Moments Ledger::*field) {
    return [field](const Sample& sample) -> std::optional<Moments> {
      if (!sample.ledger_available) return std::nullopt;
      return sample.ledger.*field;
    };
  };
  add_moments(table, "requested", exact, from_ledger(&Ledger::requested));
  add_moments(table, "allocated", exact, from_ledger(&Ledger::allocated));
  add_moments(table, "reserved", exact, from_ledger(&Ledger::reserved));
  add_moments(table, "process", noisy, [](const Sample& sample) -> std::optional<Moments> {
    if (!has_time(sample)) return std::nullopt;
    return sample.process.resident;
  });
  // All zeros, and therefore absent, on devices without a driver.
  add_moments(table, "device", noisy, [](const Sample& sample) { return sample.driver.used; });
  add_moments(table, "device_process", noisy,
              [](const Sample& sample) { return sample.driver.process; });

  table.push_back(middle_step("steady_step_time_ns", "median step time after warm-up", step_times,
                              "steady_step_time_mean_ns"));
  table.push_back({"steady_step_time_mean_ns", "ns", "mean step time after warm-up", noisy, less,
                   mean_step_time});
  table.push_back({"steady_step_time_p95_ns", "ns", "95th percentile of step times after warm-up",
                   noisy, less, [](const Sample& s) { return step_time_quantile(s, 0.95); }});
  table.push_back({"steady_step_time_max_ns", "ns", "longest step after warm-up", noisy, less,
                   [](const Sample& s) { return step_time_quantile(s, 1); }});
  table.push_back({"steady_stall_time_ns", "ns",
                   "time per step after warm-up spent waiting for data", noisy, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (!has_time(s)) return std::nullopt;
                     return mean_per_steady_step(s, s.stall_time_ns);
                   }});
  table.push_back(middle_step("steady_work_time_ns",
                              "median step time after warm-up, without making or awaiting data",
                              work_times, ""));
  table.push_back({"first_steps_time_ns", "ns", "time of the warm-up steps together", noisy, less,
                   [](const Sample& s) { return first_steps_time(s, warmup_of(s)); }});
  table.push_back({"first_step_time_ns", "ns", "time of the first step", noisy, less,
                   [](const Sample& s) { return first_steps_time(s, 1); }});
  table.push_back({"setup_ns", "ns", "time from process start to the first step", noisy, less,
                   timed([](const Sample& s) { return static_cast<double>(s.setup_ns); })});
  table.push_back({"device_setup_ns", "ns", "time to commit device memory before the first step",
                   noisy, less,
                   timed([](const Sample& s) { return static_cast<double>(s.device_setup_ns); })});
  table.push_back({"throughput_samples_per_s", "1/s",
                   "samples per second after warm-up, slow steps included", noisy, more,
                   [](const Sample& s) -> std::optional<double> {
                     const auto step = mean_step_time(s);
                     if (!step || *step <= 0) return std::nullopt;
                     return static_cast<double>(s.samples_per_step) * 1e9 / *step;
                   }});
  table.push_back({"steady_minor_faults_per_step", "1", "minor page faults per step after warm-up",
                   noisy, less, [](const Sample& s) -> std::optional<double> {
                     if (!has_time(s)) return std::nullopt;
                     return mean_per_steady_step(s, s.minor_faults);
                   }});

  table.push_back({"pipeline_bytes", "B", "most host bytes the input pipeline held after a step",
                   noisy, less, [](const Sample& s) -> std::optional<double> {
                     const auto& held = s.pipeline.host_bytes_after_step;
                     if (!has_time(s) || held.empty()) return std::nullopt;
                     return static_cast<double>(*std::max_element(held.begin(), held.end()));
                   }});
  table.push_back({"steady_device_allocations_per_step", "1",
                   "device allocations per step after warm-up", exact, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (!s.ledger_available) return std::nullopt;
                     return mean_per_steady_step(s, s.ledger.device_allocations);
                   }});
  table.push_back({"device_allocations_total", "1", "device allocations in all steps", exact, less,
                   ledger([](const Ledger& l) {
                     return sum(std::span<const std::uint64_t>(l.device_allocations));
                   })});
  table.push_back({"steady_allocated_growth_bytes_per_step", "B",
                   "growth of allocated bytes from step to step after warm-up", exact, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (!s.ledger_available) return std::nullopt;
                     return slope(steady(s, s.ledger.allocated_after_step));
                   }});
  table.push_back({"recomputed_ops_per_step", "1",
                   "forward ops repeated for the backward pass, per step", exact, less,
                   [](const Sample& s) -> std::optional<double> {
                     return static_cast<double>(s.recomputed_ops_per_step);
                   }});
  table.push_back({"flops_per_step", "1", "work of convolutions and matrix products per step",
                   exact, less, [](const Sample& s) -> std::optional<double> {
                     if (s.flops_per_step == 0) return std::nullopt;
                     return s.flops_per_step;
                   }});
  add_figures_of_training(table);
  table.push_back({"internal_fragmentation", "1", "internal fragmentation at the allocated peak",
                   exact, less, ledger([](const Ledger& l) { return l.internal_fragmentation; }),
                   DependsOn::allocator});
  table.push_back({"external_fragmentation", "1", "external fragmentation at the allocated peak",
                   exact, less, ledger([](const Ledger& l) { return l.external_fragmentation; }),
                   DependsOn::allocator});
  table.push_back({"utilisation", "1", "peak allocated over peak reserved bytes", exact, more,
                   [](const Sample& s) -> std::optional<double> {
                     if (const auto figure = reported(s, "utilisation")) return figure;
                     if (!s.ledger_available) return std::nullopt;
                     return s.ledger.utilisation;
                   },
                   DependsOn::allocator});

  table.push_back({"held_out_accuracy", "1", "accuracy on held-out data", noisy, more,
                   [](const Sample& s) { return s.held_out_accuracy; }});
  table.push_back({"final_loss", "1", "loss of the last step", noisy, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (s.loss.empty() || !std::isfinite(s.loss.back())) return std::nullopt;
                     return s.loss.back();
                   }});
  add_scenarios(table);
  return table;
}

}  // namespace

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> table = make_metrics();
  return table;
}

const Metric& find_metric(std::string_view name) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  throw_unknown_name("metric", name, names);
}

Metric::Class class_on(const Metric& metric, const Spec& device) {
  return traits_of(device).exact ? Metric::Class::exact : metric.on_device;
}

}  // namespace headroom
