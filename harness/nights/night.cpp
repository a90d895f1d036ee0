#include "harness/nights/night.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/sha256.h"
#include "harness/device/traits.h"
#include "harness/evidence/evidence.h"
#include "harness/results/metric.h"
#include "harness/results/run_differences.h"
#include "harness/stats/median.h"
#include "harness/verdicts/explain.h"

namespace headroom {
namespace {

// The median over undisturbed samples.
std::optional<double> level_of(const SampleTable& table, const SampleTable::ByBlock& samples,
                               const Metric& metric) {
  std::vector<double> values;
  for (const auto& [block, sample] : samples) {
    if (sample->status != SampleStatus::ok || table.disturbed(*sample)) continue;
    // Levels are compared as ratios, so they must be positive.
    if (const auto value = metric.value(*sample); value && *value > 0) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return median_of(values);
}

NightCell cell_of(const SampleTable& table, const Experiment& experiment, const Arm& arm) {
  const auto& samples = table.of(experiment.id, arm.name);
  const ArmState state = arm_state(table, experiment, arm);
  NightCell cell{.experiment = experiment.id,
                 .arm = arm.name,
                 .cell_id = arm.cell.id(),
                 .device_class = arm.cell.device.name(),
                 .rules = lowering_rules_of(samples),
                 .status = std::string(to_string(state.result)),
                 .why = state.why,
                 .exact = {},
                 .noisy = {}};
  if (state.result != ResultState::present) return cell;
  for (const Metric& metric : metrics())
    if (class_on(metric, arm.cell.device) == Metric::Class::exact)
      if (const auto value = agreed_value(samples, metric)) cell.exact[metric.name] = *value;
  for (const std::string& name : watched_metrics()) {
    const Metric& metric = find_metric(name);
    if (class_on(metric, arm.cell.device) == Metric::Class::exact) continue;
    if (const auto value = level_of(table, samples, metric)) cell.noisy[name] = *value;
  }
  return cell;
}

std::vector<NightVerdict> verdicts_of(const nlohmann::json& verdicts) {
  std::vector<NightVerdict> found;
  for (const auto& claim : verdicts.at("claims"))
    for (const auto& device : claim.at("verdict_by_device"))
      found.push_back({claim.at("id"), device.at("device_class"), device.at("verdict")});
  return found;
}

std::string short_hash(const std::string& text) { return sha256(text).substr(0, 8); }

std::string night_id_of(const RunInfo& info, const std::string& machine) {
  std::string stamp = info.started;
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}-{}", stamp, short_hash(info.suite + "\n" + machine),
                     short_hash(fmt::format("{}\n{}\n{}", info.run_id, info.seed, machine)));
}

}  // namespace

const std::vector<std::string>& watched_metrics() {
  static const std::vector<std::string> names = {"steady_step_time_ns",
                                                 "process_bytes.overall_peak"};
  return names;
}

std::string scope_of(const Night& night, const std::string& device_class) {
  return traits_of(Spec(device_class)).exact ? "" : night.environment_id;
}

Night night_of(const RecordedRun& run, const std::string& verdicts_json,
               const std::string& machine) {
  const RunInfo& info = run.info;
  if (info.shard)
    throw InputError(fmt::format(
        "run {} is a shard; merge it with the others first: headroom merge", info.run_id));
  if (info.status != RunStatus::finished)
    throw InputError(fmt::format(
        "run {} is not finished; finish it first: headroom run --resume RUN", info.run_id));
  Night night{.night_id = {},
              .run_id = info.run_id,
              .suite = info.suite,
              .started = info.started,
              .version = info.headroom.version,
              .commit = info.headroom.commit,
              .dirty = info.headroom.dirty,
              .machine = machine.empty() ? info.machine.hostname_hash : machine,
              .environment_id = {},
              .environment = environment_facts(info),
              .distrust = distrust_of(verdicts_json),
              .cells = {},
              .verdicts = verdicts_of(nlohmann::json::parse(verdicts_json))};
  night.night_id = night_id_of(info, night.machine);
  std::string all = night.machine;
  for (const auto& [what, value] : night.environment)
    all.append("\n").append(what).append("=").append(value);
  night.environment_id = sha256(all).substr(0, 16);
  const SampleTable table(run.samples, info.additions);
  for (const Experiment& experiment : info.experiments) {
    if (experiment.kind == ExperimentKind::control)
      continue;  // a figure of the instrument, not of the program
    for (const Arm& arm : experiment.arms) night.cells.push_back(cell_of(table, experiment, arm));
  }
  return night;
}

}  // namespace headroom
