#include "harness/training/export_state.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/recording_allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/trace/recorder.h"
#include "harness/training/trainer.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

void write_file(const std::filesystem::path& path, std::span<const char> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw InputError(fmt::format("{}: cannot be written", path.string()));
}

Json write_tensor(const std::filesystem::path& directory, const std::string& file,
                  const Value& value, std::span<const std::byte> contents) {
  write_file(directory / file, {reinterpret_cast<const char*>(contents.data()), contents.size()});
  return {{"name", value.name},
          {"shape", value.shape},
          {"dtype", to_string(value.dtype)},
          {"role", to_string(value.role)},
          {"file", file}};
}

// The attributes of the first update op, from which the other framework's optimizer is configured.
Json optimizer_of(const Program& train, const Cell& cell) {
  Json optimizer = {{"name", cell.optimizer.name()}};
  for (const Op& op : train.ops) {
    if (op.phase != Phase::update || op.attributes.empty()) continue;
    for (const auto& [key, attribute] : op.attributes)
      if (const double* number = std::get_if<double>(&attribute)) optimizer[key] = *number;
    break;
  }
  return optimizer;
}

}  // namespace

void export_state(const Cell& cell, std::uint64_t seed, int steps,
                  const std::filesystem::path& directory) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(cell.device.name());
  if (const std::string why = kind.unavailable(); !why.empty()) throw InputError(why);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be created ({}); name a writable directory",
                                 directory.string(), error.message()));
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan =
      plan_training(*workload, cell, cell.rules.empty() ? kind.default_rules : cell.rules);
  const auto device = kind.create(cell.device);
  if (!device->computes())
    throw InputError(fmt::format("{}: computes nothing, so there is no state to export",
                                 cell.device.to_string()));
  TraceRecorder recorder(0);
  const auto allocator = make_allocator(cell.allocator, device->memory());
  RecordingAllocator recorded(*allocator, recorder);
  Trainer trainer(plan, *device, recorded, recorder, workload->open_data(seed), seed);

  Json manifest = {{"workload", cell.workload.to_string()},
                   {"seed", seed},
                   {"optimizer", optimizer_of(plan.usual().programs.back(), cell)},
                   {"values", Json::array()},
                   {"states_after_first_step", Json::array()},
                   {"steps", Json::array()}};
  const auto values = plan.persistent_values();
  for (const Value* value : values)
    manifest["values"].push_back(
        write_tensor(directory, value->name + ".bin", *value, trainer.read_persistent(*value)));
  for (int step = 1; step <= steps; ++step) {
    const double loss = trainer.step().loss;
    const auto plan_inputs = plan.inputs(plan.shape_of(step));
    Json inputs = Json::array();
    for (std::size_t i = 0; i < plan_inputs.size(); ++i) {
      const Value& value = *plan_inputs[i];
      inputs.push_back(write_tensor(directory, fmt::format("step{}.{}.bin", step, value.name),
                                    value, trainer.last_batch()[i]));
    }
    manifest["steps"].push_back({{"inputs", inputs}, {"loss", loss}});
    if (step > 1) continue;
    for (const Value* value : values) {
      if (value->role != Role::optimizer_state) continue;
      manifest["states_after_first_step"].push_back(write_tensor(
          directory, "step1." + value->name + ".bin", *value, trainer.read_persistent(*value)));
    }
  }
  const std::string text = manifest.dump(1) + "\n";
  write_file(directory / "manifest.json", text);
}

}  // namespace headroom
