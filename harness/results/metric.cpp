#include "harness/results/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "harness/base/registry.h"
#include "harness/device/traits.h"
#include "harness/plan/scenario.h"
#include "harness/results/step_figures.h"

namespace headroom {
namespace {

using Read = std::function<std::optional<double>(const Sample&)>;

// A metric that is the median of the steps. Steps of two samples that took turns are compared one
// by one.
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
        return median_log_ratio(times_of(baseline), times_of(treatment));
      }};
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

Read steady_mean(std::vector<std::uint64_t> Sample::*per_step) {
  return [per_step](const Sample& sample) -> std::optional<double> {
    if (!has_time(sample)) return std::nullopt;
    return mean_per_steady_step(sample, sample.*per_step);
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
  add("offload_peak_bytes", "peak of the offloaded bytes in host memory");
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

// Adds byte counts at each moment.
void add_memory(std::vector<Metric>& table) {
  using enum Metric::Class;
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
}

void add_times(std::vector<Metric>& table) {
  const auto add = [&](const char* name, const char* text, Read read) {
    table.push_back(
        {name, "ns", text, Metric::Class::noisy, Metric::Better::less, std::move(read)});
  };
  table.push_back(middle_step("steady_step_time_ns", "median step time after warm-up", step_times,
                              "steady_step_time_mean_ns"));
  add("steady_step_time_mean_ns", "mean step time after warm-up", mean_step_time);
  add("steady_step_time_p95_ns", "95th percentile of step times after warm-up",
      [](const Sample& s) { return step_time_quantile(s, 0.95); });
  add("steady_step_time_max_ns", "longest step after warm-up",
      [](const Sample& s) { return step_time_quantile(s, 1); });
  add("steady_stall_time_ns", "time per step after warm-up spent waiting for data",
      steady_mean(&Sample::stall_time_ns));
  table.push_back(middle_step("steady_work_time_ns",
                              "median step time after warm-up, without making or awaiting data",
                              work_times, ""));
  add("first_steps_time_ns", "time of the warm-up steps together", warmup_time);
  add("first_step_time_ns", "time of the first step",
      [](const Sample& s) { return first_steps_time(s, 1); });
  add("setup_ns", "time from process start to the first step",
      timed([](const Sample& s) { return static_cast<double>(s.setup_ns); }));
  add("device_setup_ns", "time to commit device memory before the first step",
      timed([](const Sample& s) { return static_cast<double>(s.device_setup_ns); }));
}

void add_work_and_counts(std::vector<Metric>& table) {
  using enum Metric::Class;
  using enum Metric::Better;
  table.push_back({"throughput_samples_per_s", "1/s",
                   "samples per second after warm-up, slow steps included", noisy, more,
                   [](const Sample& s) -> std::optional<double> {
                     const auto step = mean_step_time(s);
                     if (!step || *step <= 0 || s.samples_per_step == 0) return std::nullopt;
                     return static_cast<double>(s.samples_per_step) * 1e9 / *step;
                   }});
  table.push_back({"steady_minor_faults_per_step", "1", "minor page faults per step after warm-up",
                   noisy, less, steady_mean(&Sample::minor_faults)});
  table.push_back({"pipeline_bytes", "B",
                   "peak of the host bytes that the input pipeline holds after a step", noisy, less,
                   [](const Sample& s) -> std::optional<double> {
                     const auto& held = s.pipeline.host_bytes_after_step;
                     if (!has_time(s) || held.empty()) return std::nullopt;
                     return static_cast<double>(*std::max_element(held.begin(), held.end()));
                   }});
  table.push_back({"steady_device_allocations_per_step", "1",
                   "device allocations per step after warm-up", exact, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (const auto figure = reported(s, "steady_device_allocations_per_step"))
                       return figure;
                     if (!s.ledger_available) return std::nullopt;
                     return mean_per_steady_step(s, s.ledger.device_allocations);
                   }});
  table.push_back({"device_allocations_total", "1", "device allocations in all steps", exact, less,
                   ledger([](const Ledger& l) {
                     return std::accumulate(l.device_allocations.begin(),
                                            l.device_allocations.end(), 0.0);
                   })});
  table.push_back({"steady_allocated_growth_bytes_per_step", "B",
                   "growth of allocated bytes from step to step after warm-up", exact, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (!s.ledger_available) return std::nullopt;
                     return growth_per_steady_step(s, s.ledger.allocated_after_step);
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
}

void add_fragmentation(std::vector<Metric>& table) {
  using enum Metric::Class;
  using enum Metric::Better;
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
}

void add_learning(std::vector<Metric>& table) {
  using enum Metric::Class;
  using enum Metric::Better;
  table.push_back({"held_out_accuracy", "1", "accuracy on held-out data", noisy, more,
                   [](const Sample& s) { return s.held_out_accuracy; }});
  table.push_back({"final_loss", "1", "loss of the last step", noisy, less,
                   [](const Sample& s) -> std::optional<double> {
                     if (s.loss.empty() || !std::isfinite(s.loss.back())) return std::nullopt;
                     return s.loss.back();
                   }});
}

std::vector<Metric> make_metrics() {
  std::vector<Metric> table;
  for (const auto& add : {add_memory, add_times, add_work_and_counts, add_figures_of_training,
                          add_fragmentation, add_learning, add_scenarios})
    add(table);
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
