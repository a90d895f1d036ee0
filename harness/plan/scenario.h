// What a claim is tried with where training steps are not enough: a search for the largest batch, a
// program that leaks, an interface that may not exist. Each is a plug-in that claims and suites
// name on the axis `scenario`, run in a fresh process like every sample.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/plan/depends_on.h"

namespace headroom {

struct ScenarioResult {
  std::map<std::string, double> figures;  // "largest_batch" → 48, by their metrics' names
  std::string note;                       // what a reader should know of them, in words
  std::string why_not_engaged;            // "" = it did what its name says
};

// One figure, as harness/results/metric.h lists it among the metrics: <scenario>.<name>.
struct ScenarioFigure {
  std::string name;
  std::string unit;    // "B", "ns", "1"
  std::string text;    // in words, for sentences
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
  // Checks parameters beyond their names when a claim or suite is read, or null. Without one, only
  // `parameters` may be given.
  std::function<void(const Spec&)> check;
  // Throws NotSupported where the machine lacks what it takes, with what would help.
  std::function<ScenarioResult(const Cell&, std::uint64_t seed)> run;
  // Whose behaviour the figures are, where that is not Headroom's own: "TensorFlow". May be null.
  std::function<std::string(const Spec&)> engine;
  bool takes_workload = false;
};

// Whether the cell is plain training steps.
bool trains(const Cell& cell);
// "" for Headroom.
std::string engine_of(const Spec& scenario);
bool takes_workload(const Spec& scenario);
// Nothing in the cell's result depends on the speed of the machine or on what else runs there.
bool is_exact_cell(const Cell& cell);

// Throws InputError for an unknown name or parameter.
void check_scenario(const Spec& scenario);
// In this process. Throws NotSupported, OutOfMemory, InputError.
ScenarioResult run_scenario(const Cell& cell, std::uint64_t seed);

// The axis value of cells that train; and the workload and allocator of cells that need none.
inline constexpr const char* kTraining = "train";
inline constexpr const char* kNothing = "none";

}  // namespace headroom
