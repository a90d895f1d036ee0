// Runs the Python programs of scenarios, in the system's interpreter or in a separate environment
// with a framework. Environments are optional: scripts/setup --with creates them.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"

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

}  // namespace headroom
