// interface: does a framework have the interface that a claim tells users to use, and what does
// using it raise? bench/probes/ask_<engine>.py asks the framework itself, in a separate process in
// the environment of `scripts/setup --with <engine>`. If that environment is missing, facts
// recorded earlier, with version and date, are read from bench/probes/<engine>.json, and the note
// says so.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/scenarios/python_program.h"
#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/plan/scenario.h"

namespace headroom {
namespace {

using Json = nlohmann::json;

std::filesystem::path probes(const std::string& file) {
  return headroom_home() / "bench" / "probes" / file;
}

// The recorded fact about `name`.
Json recorded(const std::string& engine, const std::string& name) {
  const auto file = probes(engine + ".json");
  const Json facts = Json::parse(read_file(file));
  for (const Json& fact : facts.at("facts")) {
    if (fact.at("name") != name) continue;
    Json with_place = fact;
    with_place["how"] = fmt::format("by documentation: recorded with {} on {}",
                                    facts.at("version").get<std::string>(),
                                    facts.at("recorded").get<std::string>());
    return with_place;
  }
  throw InputError(fmt::format("{} has no fact about '{}'", file.string(), name));
}

Json ask(const std::string& engine, const std::string& name, const std::string& what) {
  const std::string line =
      run_python(engine, {probes("ask_" + engine + ".py").string(), "--probe", name}, what);
  Json fact = Json::parse(line);
  fact["how"] = fmt::format("executed with {}", fact.at("version").get<std::string>());
  return fact;
}

ScenarioResult ask_about_interface(const Cell& cell, std::uint64_t) try {
  const std::string engine = cell.scenario.text("engine", "tensorflow");
  const std::string name = cell.scenario.text("name", "");
  const Json fact =
      has_python(engine) ? ask(engine, name, cell.scenario.to_string()) : recorded(engine, name);
  return {.figures = {{"works", fact.at("works").get<bool>() ? 1.0 : 0.0}},
          .note = fmt::format("{} ({}).", fact.at("says").get<std::string>(),
                              fact.at("how").get<std::string>()),
          .why_not_engaged = {}};
} catch (const Json::exception& error) {
  throw Error(fmt::format("{}: no readable fact: {}", cell.scenario.to_string(), error.what()));
}

const bool interface_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "interface",
     .summary = "Asks a framework whether it has the function or setting that a claim names "
                "(name=, of bench/probes)",
     .parameters = {"engine", "name"},
     .examples = {"interface(engine=tensorflow,name=set_memory_growth)"},
     .figures = {{.name = "works",
                  .unit = "1",
                  .text = "it can be used as the source uses it",
                  .exact = true,
                  .more_is_better = true,
                  .depends_on = DependsOn::software}},
     .check =
         [](const Spec& scenario) {
           scenario.require_known({"engine", "name"});
           has_python(scenario.text("engine", "tensorflow"));
           recorded(scenario.text("engine", "tensorflow"), scenario.text("name", ""));
         },
     .run = ask_about_interface,
     .engine = [](const Spec&) { return std::string("TensorFlow"); }});

}  // namespace
}  // namespace headroom
