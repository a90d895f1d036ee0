// framework_on_host: a framework trains a network on the machine's own processor, with the cell's
// allocator in place of its own, so that the allocator's speed and memory are measured under the
// program that people run. Without an allocator, the framework keeps its own.
//
// framework_on_host(framework=pytorch,network=resnet,batch=2,image=64) runs
// bench/frameworks/pytorch_on_host.py in the environment of `scripts/setup --with pytorch`, for the
// cell's steps; the other parameters go to that program. The allocator may take the capacity of the
// cell's device. Only PyTorch can be served (capture/library.cpp).
#include <fmt/format.h>

#include "bench/scenarios/python_program.h"
#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/base/scratch_directory.h"
#include "harness/device/host/host_memory.h"
#include "harness/memory/served_allocator_check.h"
#include "harness/plan/scenario.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/virtual_gpu/outcome.h"

namespace headroom {
namespace {

constexpr const char* kFramework = "pytorch";
constexpr const char* kDeviceAllocations = "steady_device_allocations_per_step";

virtual_gpu::Serving serving_of(const Cell& cell) {
  if (cell.allocator.name() == kNothing) return {.allocator = "", .host_capacity = std::nullopt};
  const Bytes capacity = cell.device.bytes("capacity", default_host_capacity());
  check_served_allocator(cell.allocator, capacity);
  return {.allocator = cell.allocator.to_string(), .host_capacity = capacity};
}

void add_memory(ScenarioResult& result, const virtual_gpu::Outcome& outcome) {
  for (const virtual_gpu::Framework& framework : outcome.frameworks) {
    result.figures["process_bytes.overall_peak"] = static_cast<double>(framework.peak_resident);
    for (const virtual_gpu::FrameworkUse& device : framework.devices) {
      if (!device.not_engaged.empty()) result.why_not_engaged = device.not_engaged;
      if (device.peak_reserved == 0) continue;  // PyTorch's own allocator counts nothing
      result.figures["requested_bytes.overall_peak"] = static_cast<double>(device.peak_requested);
      result.figures["allocated_bytes.overall_peak"] = static_cast<double>(device.peak_allocated);
      result.figures["reserved_bytes.overall_peak"] = static_cast<double>(device.peak_reserved);
    }
  }
}

ScenarioResult train_on_host(const Cell& cell, std::uint64_t seed, int turns) {
  const std::string what = cell.scenario.to_string();
  if (cell.device.name() != "host")
    throw NotSupported(what + ": needs device=host, the machine's own processor");
  const ScratchDirectory records;
  std::vector<std::string> environment =
      virtual_gpu::environment_on_host(records.path(), serving_of(cell));
  environment.insert(environment.begin(), "PYTHONPATH=" + virtual_gpu::hook_directory().string());
  const auto program = headroom_home() / "bench" / "frameworks" / "pytorch_on_host.py";
  ScenarioResult result =
      run_program(kFramework,
                  {program.string(), "--seed", std::to_string(seed % 1'000'000'007), "--warmup",
                   std::to_string(cell.warmup_steps), "--steps",
                   std::to_string(cell.measured_steps), fmt::format("--turns={}", turns)},
                  cell.scenario, {"framework"}, environment);
  for (const auto& [name, value] : result.figures)
    if (name != "trained" && name != kDeviceAllocations)
      throw Error(fmt::format("{}: reports '{}', which no metric reads", what, name));
  add_memory(result, virtual_gpu::read_outcome(records.path()));
  return result;
}

void check_framework_on_host(const Spec& scenario) {
  if (const std::string framework = scenario.text("framework", ""); framework != kFramework)
    throw_unknown_name("framework", framework, {kFramework});
  for (const char* own : {"seed", "steps", "turns", "warmup"})
    if (scenario.has(own))
      throw InputError(fmt::format(
          "{}: {} is not a parameter of this scenario; an experiment has warmup_steps and "
          "measured_steps",
          scenario.to_string(), own));
}

const bool framework_on_host_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "framework_on_host",
     .summary = "A framework (framework=pytorch) trains a network on the machine's own processor, "
                "with the allocator of the cell in place of its own",
     .parameters = {"framework", "and what bench/frameworks/pytorch_on_host.py takes"},
     .examples = {"framework_on_host(batch=2,framework=pytorch,image=64,network=resnet)"},
     // Not exact, because what is timed takes turns and needs many pairs.
     .figures = {{.name = "trained",
                  .unit = "1",
                  .text = "all steps were trained",
                  .more_is_better = true}},
     .check = check_framework_on_host,
     .unavailable = [](const Spec&) { return why_no_python(kFramework); },
     .run = [](const Cell& cell, std::uint64_t seed) { return train_on_host(cell, seed, -1); },
     .run_in_turns = train_on_host,
     .engine = [](const Spec&) -> std::string { return "PyTorch"; }});

}  // namespace
}  // namespace headroom
