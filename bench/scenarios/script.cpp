// script: runs a Python program of bench/scenarios/programs that prints its measurements, so that a
// claim about Python programs or a framework is tested on that software itself.
//
// `script(file=free_memory,case=small,collect=on)` runs bench/scenarios/programs/free_memory.py
// with --case small --collect on; its last line (python_program.h) has figures from the list below.
// python=tensorflow runs it in the environment of `scripts/setup --with tensorflow`; where that
// environment is missing, the sample says so. The program runs in a child process of the sample's,
// so its figures include nothing else.
#include <fmt/format.h>

#include <algorithm>

#include "bench/scenarios/python_program.h"
#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/base/text.h"
#include "harness/plan/scenario.h"

namespace headroom {
namespace {

const std::vector<ScenarioFigure> kFigures = {
    {.name = "resident_growth_bytes", .unit = "B", .text = "growth of resident memory"},
    {.name = "peak_growth_bytes", .unit = "B", .text = "growth of resident memory at its peak"},
    {.name = "growth_bytes_per_step", .unit = "B", .text = "growth of resident memory per step"},
    {.name = "tree_growth_bytes",
     .unit = "B",
     .text = "growth of all processes, shared pages counted once"},
    {.name = "copied_share", .unit = "1", .text = "share of the data that each worker copied"},
    {.name = "returned_share", .unit = "1", .text = "share of the memory taken that went back"},
    {.name = "live_bytes", .unit = "B", .text = "bytes in live objects"},
    {.name = "variable_bytes",
     .unit = "B",
     .text = "bytes of the model's variables",
     .exact = true},
    {.name = "detection_rate",
     .unit = "1",
     .text = "share of leaks that are detected",
     .more_is_better = true},
    {.name = "false_alarm_rate", .unit = "1", .text = "share of sound programs called leaking"},
    {.name = "elapsed_ns", .unit = "ns", .text = "time for all steps"},
    {.name = "artifact_bytes", .unit = "B", .text = "bytes of the file written", .exact = true},
    {.name = "holds",
     .unit = "1",
     .text = "the condition that the program tested holds",
     .exact = true},
};

std::filesystem::path file_of(const Spec& scenario) {
  const std::string name = scenario.text("file", "");
  const auto file = headroom_home() / "bench" / "scenarios" / "programs" / (name + ".py");
  // Suites are untrusted input: they may only name programs in this folder, not paths to others.
  if (!is_file_name(name) || !std::filesystem::is_regular_file(file))
    throw InputError(
        fmt::format("{}: there is no {}; file= names a program of bench/scenarios/programs "
                    "without its .py",
                    scenario.to_string(), file.string()));
  return file;
}

ScenarioResult run_script(const Cell& cell, std::uint64_t seed) {
  const Spec& scenario = cell.scenario;
  const ScenarioResult result =
      run_program(scenario.text("python", "system"),
                  {file_of(scenario).string(), "--seed", std::to_string(seed % 1'000'000'007)},
                  scenario, {"file", "python"});
  for (const auto& [name, value] : result.figures)
    if (std::none_of(kFigures.begin(), kFigures.end(),
                     [&, &key = name](const ScenarioFigure& figure) { return figure.name == key; }))
      throw Error(fmt::format("{}: prints the figure '{}', which no metric reads",
                              scenario.to_string(), name));
  return result;
}

const bool script_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "script",
     .summary =
         "Runs a Python program of bench/scenarios/programs (file=) with the other parameters, in "
         "the system's Python or in the environment of a framework (python=tensorflow)",
     .parameters = {"file", "python", "and what the program takes"},
     .examples = {"script(case=large,file=free_memory)"},
     .figures = kFigures,
     .check =
         [](const Spec& scenario) {
           file_of(scenario);
           has_python(scenario.text("python", "system"));
         },
     .unavailable =
         [](const Spec& scenario) { return why_no_python(scenario.text("python", "system")); },
     .run = run_script,
     .engine = [](const Spec& scenario) -> std::string {
       return scenario.text("python", "system") == "system" ? "Python" : "TensorFlow";
     }});

}  // namespace
}  // namespace headroom
