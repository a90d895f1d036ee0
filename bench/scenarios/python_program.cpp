#include "bench/scenarios/python_program.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongest{9};
constexpr const char* kSystemPython = "/usr/bin/python3";

fs::path python_of(const std::string& name) {
  if (!is_file_name(name))
    throw InputError(fmt::format("'{}' is not a name of an environment", name));
  return name == "system" ? fs::path(kSystemPython) : environment_python(name);
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

bool has_python(const std::string& name) { return fs::exists(python_of(name)); }

Reason why_no_python(const std::string& name) {
  return unless(
      has_python(name),
      name == "system"
          ? fmt::format("there is no {}; install Debian's python3", kSystemPython)
          : fmt::format("{} is not set up: scripts/setup --with {} makes an environment for it",
                        name, name));
}

std::string run_python(const std::string& name, std::vector<std::string> arguments,
                       const std::string& what, std::vector<std::string> environment) {
  if (const Reason why = why_no_python(name)) throw NotSupported(*why);
  // The program runs without PYTHON* variables and user site packages, and in Headroom's folder,
  // because processes that it spawns search their working directory for modules.
  std::vector<std::string> argv = {python_of(name).string(), "-s"};
  if (environment.empty()) argv.emplace_back("-E");
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const SubprocessResult said = run_subprocess({.argv = argv,
                                                .timeout = kLongest,
                                                .environment = std::move(environment),
                                                .directory = fs::absolute(headroom_home())});
  if (said.ending != Ending::exited || said.code != 0)
    throw Error(fmt::format("{}: the program failed: {}", what, last_line(said.errors)));
  return last_line(said.output);
}

ScenarioResult run_program(const std::string& python, std::vector<std::string> arguments,
                           const Spec& scenario, const std::set<std::string>& own,
                           std::vector<std::string> environment) {
  const std::string what = scenario.to_string();
  for (const auto& [key, value] : scenario.parameters())
    if (!own.contains(key)) arguments.insert(arguments.end(), {"--" + key, value});
  const std::string line = run_python(python, arguments, what, std::move(environment));
  try {
    const auto json = nlohmann::json::parse(line);
    if (const std::string lacks = json.value("not_supported", ""); !lacks.empty())
      throw NotSupported(fmt::format("{}: {}", what, lacks));
    const std::string why = json.value("why_not_engaged", "");
    return {.figures = json.at("figures").get<std::map<std::string, double>>(),
            .note = json.value("note", ""),
            .why_not_engaged = unless(why.empty(), why),
            .engine = json.value("engine", ""),
            .step_time_ns = json.value("step_time_ns", std::vector<std::uint64_t>{})};
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: its last line is not a result: {}", what, error.what()));
  }
}

}  // namespace headroom
