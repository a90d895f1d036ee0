// Runs the Python programs of scenarios, in the system's interpreter or in a separate environment
// with a framework. Environments are optional: scripts/setup --with creates them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/scenario.h"

namespace headroom {

// `name` is "system" or an environment.
bool has_python(const std::string& name);
// Why there is no such interpreter, and how to get it; absent if it is there.
Reason why_no_python(const std::string& name);

// Returns the last line that the program prints. Throws NotSupported when the interpreter is
// missing, and Error with the program's last output when it fails; `what` names it in messages.
// `environment` ("NAME=value") replaces the program's PYTHON* variables where it is not empty.
std::string run_python(const std::string& name, std::vector<std::string> arguments,
                       const std::string& what, std::vector<std::string> environment = {});

// Runs `arguments` with the parameters of `scenario` that are not its `own`, as --key value, in the
// same way. The last line must be one JSON object: {"figures": {…}, "note": "…",
// "why_not_engaged": "…", "engine": "TensorFlow 2.21.0", "step_time_ns": […]}, of which only the
// figures must be there; or {"not_supported": "why"}, if the framework lacks what was asked for.
ScenarioResult run_program(const std::string& python, std::vector<std::string> arguments,
                           const Spec& scenario, const std::set<std::string>& own,
                           std::vector<std::string> environment = {});

}  // namespace headroom
