// Scenarios test claims that training steps cannot: a search for the largest batch, a program that
// leaks, an interface that may not exist. Each is a plug-in that claims and suites name on the axis
// `scenario`, and it runs in a fresh process like every sample.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/cell.h"
#include "harness/plan/depends_on.h"

namespace headroom {

struct ScenarioResult {
  std::map<std::string, double> figures;  // metric name to value: "largest_batch" → 48
  std::string note;                       // what a reader should know about the figures
  Reason why_not_engaged;                 // absent: it did what its name says
  std::string engine{};  // name and version of the framework that ran; "" = Headroom
  std::vector<std::uint64_t> step_time_ns{};  // of each step, from the first; empty: no times
};

// One figure of a scenario. harness/results/metric.h lists it among the metrics as
// <scenario>.<name>.
struct ScenarioFigure {
  std::string name;
  std::string unit;    // "B", "ns", "1"
  std::string text;    // description for use in sentences
  bool exact = false;  // two fresh processes must agree bit for bit
  bool more_is_better = false;
  DependsOn depends_on = DependsOn::device;
};

struct ScenarioKind {
  static constexpr std::string_view kKind = "scenario";
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;
  std::vector<ScenarioFigure> figures;
  // Checks the values of parameters when a claim or suite is read. If null, only the names are
  // checked against `parameters`.
  std::function<void(const Spec&)> check;
  // Returns why this machine cannot run the scenario, with a remedy; absent if it can. May be null.
  // It must be quick, because every configuration of a plan asks.
  std::function<Reason(const Spec&)> unavailable = {};
  // Throws NotSupported, with a remedy, if the machine lacks what the scenario needs.
  std::function<ScenarioResult(const Cell&, std::uint64_t seed)> run;
  // Does so in turns with the other configurations of the block, if the scenario takes training
  // steps: they are given on `turns`, a descriptor of a TurnTaker (subprocess.h). May be null.
  std::function<ScenarioResult(const Cell&, std::uint64_t seed, int turns)> run_in_turns = {};
  // Names the software that the figures describe if it is not Headroom: "TensorFlow". May be null.
  std::function<std::string(const Spec&)> engine;
  bool takes_workload = false;
};

// Whether the cell trains, as most do.
bool trains(const Cell& cell);
// The engine that a scenario's figures describe; "" for Headroom.
std::string engine_of(const Spec& scenario);
bool takes_workload(const Spec& scenario);
bool takes_turns(const Spec& scenario);
// Returns why this machine cannot run the scenario, as far as that is known before it starts.
Reason unavailable_scenario(const Spec& scenario);
// Whether the cell's result is independent of the machine's speed and of other load.
bool is_exact_cell(const Cell& cell);

// Throws InputError for an unknown name or parameter.
void check_scenario(const Spec& scenario);
// Runs the cell's scenario in this process; `turns` is the descriptor of its turns, or -1. Throws
// NotSupported, OutOfMemory, InputError.
ScenarioResult run_scenario(const Cell& cell, std::uint64_t seed, int turns = -1);

// The scenario of cells that train; kNothing is the workload and allocator of cells that need none.
inline constexpr const char* kTraining = "train";
inline constexpr const char* kNothing = "none";

}  // namespace headroom
