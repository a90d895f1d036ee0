// virtual_gpu: a framework trains a network on the virtual card that the cell's device names, so
// that a claim about the framework's memory is tried on the framework itself. Its own code sends
// the requests and its own allocator serves them, out of the capacity of that card; kernels do
// nothing (harness/virtual_gpu).
//
// virtual_gpu(framework=tensorflow,network=resnet50,batch=32) runs
// bench/frameworks/tensorflow_training.py (program=NAME: tensorflow_NAME.py) in the environment of
// `scripts/setup --with tensorflow`; the other parameters go to that program, which must name its
// engine (python_program.h). A program that ran out of memory says so with the figure trained = 0;
// that is a result.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/scenarios/python_program.h"
#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/base/scratch_directory.h"
#include "harness/base/text.h"
#include "harness/device/meta/cards.h"
#include "harness/plan/scenario.h"
#include "harness/results/metric.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/virtual_gpu/outcome.h"

namespace headroom {
namespace {

constexpr const char* kHeldAtMost = "reserved_bytes.overall_peak";

const std::vector<std::pair<std::string, std::string>> kFrameworks = {
    {"tensorflow", "TensorFlow"}, {"pytorch", "PyTorch"}, {"jax", "JAX"}};

// Every figure is a count of the framework's memory, so two processes agree on it.
ScenarioFigure figure(const std::string& name, const std::string& unit, const std::string& text,
                      bool more_is_better = false) {
  return {.name = name,
          .unit = unit,
          .text = text,
          .exact = true,
          .more_is_better = more_is_better,
          .depends_on = DependsOn::allocator};
}

ScenarioFigure bytes_at_peak(const std::string& name, const std::string& role) {
  return figure(name, "B", role + " at the peak of allocated bytes");
}

constexpr bool kMoreIsBetter = true;

const std::vector<ScenarioFigure> kOwnFigures = {
    figure("trained", "1", "all steps were trained", kMoreIsBetter),
    figure("first_operation_bytes", "B", "reserved bytes after the first operation on the GPU"),
    figure("pool_bytes", "B", "bytes of the regions that the framework's allocator says it took"),
    figure("beside_pool_bytes", "B", "reserved bytes that lie beside the framework's allocator"),
    figure("growth_bytes_per_step", "B", "growth per step of the bytes in use on the card"),
    figure("returned_share", "1",
           "share of what was taken that went back to the framework's allocator", kMoreIsBetter),
    figure("returned_to_card_share", "1", "share of what was taken that went back to the card",
           kMoreIsBetter),
    figure("holds", "1", "the condition that the program tested holds"),
    bytes_at_peak("weight_bytes", "weights"),
    bytes_at_peak("gradient_bytes", "gradients"),
    bytes_at_peak("state_bytes", "optimizer state"),
    bytes_at_peak("activation_bytes", "activations"),
    bytes_at_peak("temporary_bytes", "temporaries and workspaces"),
    bytes_at_peak("other_bytes", "the batch and everything else"),
};

// What PyTorch's hook calls roles, and the figures of their bytes.
const std::map<std::string, std::string> kRoleFigures = {
    {"weights", "weight_bytes"},        {"gradients", "gradient_bytes"},
    {"optimizer state", "state_bytes"}, {"activations", "activation_bytes"},
    {"temporaries", "temporary_bytes"}, {"workspaces", "temporary_bytes"}};

std::string framework_of(const Spec& scenario) { return scenario.text("framework", ""); }

std::filesystem::path program_of(const Spec& scenario) {
  const std::string name =
      fmt::format("{}_{}", framework_of(scenario), scenario.text("program", "training"));
  // Suites are untrusted input: they may only name programs of this folder, not paths to others.
  if (!is_file_name(name)) throw InputError(fmt::format("'{}' is not the name of a program", name));
  return headroom_home() / "bench" / "frameworks" / (name + ".py");
}

// A figure is the scenario's own, or has the name and the meaning of a metric of training steps.
void check_figure(const std::string& name, const std::string& what) {
  const bool own = std::any_of(kOwnFigures.begin(), kOwnFigures.end(),
                               [&](const ScenarioFigure& figure) { return figure.name == name; });
  if (!own && find_metric(name).depends_on != DependsOn::allocator)
    throw Error(fmt::format("{}: reports '{}', which is not a memory figure", what, name));
}

// The ledger of the stand-ins and the framework's own counters tell of the same bytes. Where they
// contradict each other, neither is evidence.
Reason contradiction(const std::map<std::string, double>& figures, Bytes ledger_peak) {
  const auto held = static_cast<double>(ledger_peak);
  for (const auto& [name, value] : figures)
    if (name.find("_bytes") != std::string::npos && value > held)
      return fmt::format("the framework says {} of {}, and the card gave {} at most",
                         format_bytes(static_cast<Bytes>(value)), name, format_bytes(ledger_peak));
  return std::nullopt;
}

virtual_gpu::Launch launch_on(const Card& card, const Spec& scenario,
                              const std::filesystem::path& records) {
  const std::string python = environment_python(framework_of(scenario)).string();
  return {.card = virtual_gpu::description_of(card, card.capacity),
          .devices = static_cast<int>(scenario.integer("cards", 1)),
          .records = records,
          .cudnn = virtual_gpu::find_cudnn(python),
          .nvrtc = virtual_gpu::find_nvrtc(python)};
}

// Only PyTorch tells the role of every block.
void add_roles(std::map<std::string, double>& figures, const virtual_gpu::Outcome& outcome) {
  for (const virtual_gpu::Framework& framework : outcome.frameworks) {
    if (!framework.name.starts_with("PyTorch") || framework.devices.empty()) continue;
    for (const auto& [role, figure] : kRoleFigures) figures.emplace(figure, 0.0);
    for (const virtual_gpu::Share& share : framework.devices.front().roles) {
      const auto figure = kRoleFigures.find(share.name);
      figures[figure == kRoleFigures.end() ? "other_bytes" : figure->second] +=
          static_cast<double>(share.bytes);
    }
  }
}

void add_ledger(ScenarioResult& result, const virtual_gpu::Outcome& outcome) {
  if (!outcome.not_supported.empty())
    throw NotSupported(fmt::format("the virtual GPU lacks {}", outcome.not_supported.front()));
  const Bytes peak = outcome.peak();
  if (!result.why_not_engaged) result.why_not_engaged = contradiction(result.figures, peak);
  // After an out-of-memory error, the peak is the size of the card, not the need of the training.
  if (const auto trained = result.figures.find("trained");
      trained != result.figures.end() && trained->second == 0)
    return;
  result.figures[kHeldAtMost] = static_cast<double>(peak);
  add_roles(result.figures, outcome);
  if (const auto pool = result.figures.find("pool_bytes"); pool != result.figures.end())
    result.figures["beside_pool_bytes"] = static_cast<double>(peak) - pool->second;
  if (const auto live = result.figures.find("allocated_bytes.overall_peak");
      live != result.figures.end() && peak > 0)
    result.figures["utilisation"] = live->second / static_cast<double>(peak);
}

ScenarioResult train_on_virtual_card(const Cell& cell, std::uint64_t) {
  const Spec& scenario = cell.scenario;
  const std::string what = scenario.to_string();
  if (cell.device.name() != "virtual")
    throw NotSupported(
        fmt::format("{}: needs a card that is not there, such as "
                    "device=virtual(card=v100-16gb)",
                    what));
  const ScratchDirectory records;
  const auto launch = launch_on(find_card(cell.device.text("card", "")), scenario, records.path());
  std::vector<std::string> environment = virtual_gpu::environment_for(launch);
  environment.insert(environment.begin(), "PYTHONPATH=" + virtual_gpu::hook_directory().string());
  ScenarioResult result = run_program(framework_of(scenario), {program_of(scenario).string()},
                                      scenario, {"framework", "cards", "program"}, environment);
  if (result.engine.empty()) throw Error(what + ": its last line names no engine");
  for (const auto& [name, value] : result.figures) check_figure(name, what);
  add_ledger(result, virtual_gpu::read_outcome(records.path()));
  return result;
}

void check_virtual_gpu(const Spec& scenario) {
  std::vector<std::string> known;
  for (const auto& [name, title] : kFrameworks) known.push_back(name);
  if (std::find(known.begin(), known.end(), framework_of(scenario)) == known.end())
    throw_unknown_name("framework", framework_of(scenario), known);
  if (!std::filesystem::is_regular_file(program_of(scenario)))
    throw InputError(
        fmt::format("{}: there is no {}", scenario.to_string(), program_of(scenario).string()));
  if (const auto cards = scenario.integer("cards", 1); cards < 1 || cards > 8)
    throw InputError(scenario.to_string() + ": cards must be from 1 to 8");
}

const bool virtual_gpu_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "virtual_gpu",
     .summary = "A framework (framework=) trains a network on the virtual card of the device, with "
                "its own allocator; bytes are the framework's own",
     .parameters = {"framework", "program", "cards", "and what bench/frameworks takes"},
     .examples = {"virtual_gpu(batch=32,framework=tensorflow,network=resnet50)"},
     .figures = kOwnFigures,
     .check = check_virtual_gpu,
     .unavailable = [](const Spec& scenario) { return why_no_python(framework_of(scenario)); },
     .run = train_on_virtual_card,
     .engine = [](const Spec& scenario) -> std::string {
       for (const auto& [name, title] : kFrameworks)
         if (name == framework_of(scenario)) return title;
       return "a framework";
     }});

}  // namespace
}  // namespace headroom
