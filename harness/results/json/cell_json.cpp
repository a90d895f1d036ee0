#include "harness/results/json/cell_json.h"

#include "harness/device/traits.h"
#include "harness/plan/accumulation.h"

namespace headroom {
namespace {

Json traits_to_json(const DeviceTraits& traits) {
  return {{"computes", traits.computes},     {"timed", traits.timed},
          {"exact", traits.exact},           {"simulated", traits.simulated},
          {"has_driver", traits.has_driver}, {"virtual_card", traits.virtual_card}};
}

}  // namespace

Json cell_to_json(const Cell& cell, std::int64_t batch) {
  return {{"cell_id", cell.id()},
          {"workload", cell.workload.to_string()},
          {"batch", cell.workload.integer("batch", batch)},
          {"device", cell.device.to_string()},
          {"device_class", cell.device.name()},
          {"device_traits", traits_to_json(traits_of(cell.device))},
          {"rules", cell.rules},
          {"allocator", cell.allocator.to_string()},
          {"execution", cell.execution.to_string()},
          {"pipeline", cell.pipeline.to_string()},
          {"accumulation", cell.accumulation.to_string()},
          {"accumulation_steps", micro_batches_of(cell.accumulation)},
          {"checkpointing", cell.checkpointing.to_string()},
          {"precision", cell.precision.to_string()},
          {"pruning", cell.pruning.to_string()},
          {"optimizer", cell.optimizer.to_string()},
          {"inject", cell.inject.to_string()},
          {"scenario", cell.scenario.to_string()},
          {"warmup_steps", cell.warmup_steps},
          {"measured_steps", cell.measured_steps},
          {"distribution", nullptr}};  // Headroom has no strategies of distribution
}

Cell cell_from_json(const Json& json) {
  const auto spec = [&](const char* key) { return Spec::parse(json.at(key).get<std::string>()); };
  // Older files lack these fields or hold null in them.
  const auto spec_or = [&](const char* key, const Spec& otherwise) {
    return json.contains(key) && json.at(key).is_string() ? spec(key) : otherwise;
  };
  return {.workload = spec("workload"),
          .device = spec("device"),
          .rules = json.at("rules").get<std::string>(),
          .allocator = Spec::parse_composition(json.at("allocator").get<std::string>()),
          .execution = spec("execution"),
          .pipeline = Spec::parse_composition(json.at("pipeline").get<std::string>()),
          .accumulation = spec_or("accumulation", Cell{}.accumulation),
          .checkpointing = spec_or("checkpointing", Cell{}.checkpointing),
          .precision = spec_or("precision", Cell{}.precision),
          .pruning = spec_or("pruning", Cell{}.pruning),
          .optimizer = spec("optimizer"),
          .inject = spec_or("inject", Cell{}.inject),
          .scenario = spec_or("scenario", Cell{}.scenario),
          .warmup_steps = json.at("warmup_steps").get<int>(),
          .measured_steps = json.at("measured_steps").get<int>()};
}

}  // namespace headroom
