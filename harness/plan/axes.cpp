#include "harness/plan/axes.h"

#include <algorithm>
#include <functional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/scenario.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/workload/pipeline.h"
#include "harness/workload/workload.h"

namespace headroom {
namespace {

template <typename Plugin>
void check_plugin(const Spec& spec) {
  spec.require_known(Registry<Plugin>::instance().find(spec.name()).parameters);
}

// The neutral choice is valid but not a registered plug-in.
template <typename Strategy>
void check_pass(const Spec& spec) {
  std::vector<std::string> known = Registry<Strategy>::instance().names();
  if (!Strategy::kNeutral.empty()) known.emplace_back(Strategy::kNeutral);
  std::sort(known.begin(), known.end());
  if (std::find(known.begin(), known.end(), spec.name()) == known.end())
    throw_unknown_name(Strategy::kKind, spec.name(), known);
  check_strategy<Strategy>(spec);
}

void check_device(const Spec& spec) { Registry<DeviceKind>::instance().find(spec.name()); }

struct Axis {
  std::string name;
  Spec Cell::*member;
  std::function<void(const Spec&)> check;
};

const std::vector<Axis>& axes() {
  static const std::vector<Axis> list = {
      {"workload", &Cell::workload, check_plugin<WorkloadKind>},
      {"device", &Cell::device, check_device},
      {"rules", nullptr, check_plugin<LoweringRules>},
      {"allocator", &Cell::allocator, check_allocator},
      {"execution", &Cell::execution, check_pass<ExecutionStrategy>},
      {"pipeline", &Cell::pipeline, [](const Spec& spec) { check_pipeline(spec); }},
      {"accumulation", &Cell::accumulation, [](const Spec& spec) { micro_batches_of(spec); }},
      {"checkpointing", &Cell::checkpointing, check_pass<CheckpointingStrategy>},
      {"precision", &Cell::precision, check_pass<PrecisionStrategy>},
      {"pruning", &Cell::pruning, check_pass<PruningStrategy>},
      {"optimizer", &Cell::optimizer, check_pass<OptimizerStrategy>},
      {"inject", &Cell::inject, check_injection},
      {"scenario", &Cell::scenario, check_scenario},
  };
  return list;
}

const Axis& find_axis(std::string_view name) {
  const auto found = std::find_if(axes().begin(), axes().end(),
                                  [&](const Axis& axis) { return axis.name == name; });
  if (found == axes().end()) throw_unknown_name("axis", name, axis_names());
  return *found;
}

}  // namespace

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Axis& axis : axes()) result.push_back(axis.name);
    return result;
  }();
  return names;
}

std::string axis_value(const Cell& cell, std::string_view name) {
  const Axis& axis = find_axis(name);
  return axis.member == nullptr ? cell.rules : (cell.*axis.member).to_string();
}

void set_axis(Cell& cell, std::string_view name, const std::string& value) {
  const Axis& axis = find_axis(name);
  const bool composes = axis.member == &Cell::allocator || axis.member == &Cell::pipeline;
  Spec spec = composes ? Spec::parse_composition(value) : Spec::parse(value);
  // Its weight decay is decoupled, which is what frameworks call AdamW.
  if (axis.member == &Cell::optimizer && spec.name() == "adamw")
    spec = Spec("adam", spec.parameters());
  axis.check(spec);
  if (axis.member == nullptr) {
    cell.rules = spec.to_string();
  } else {
    cell.*axis.member = spec;
  }
}

void resolve_rules(Cell& cell) {
  const auto& devices = Registry<DeviceKind>::instance();
  if (cell.rules.empty() && devices.contains(cell.device.name()))
    cell.rules = devices.find(cell.device.name()).default_rules;
}

}  // namespace headroom
