// Python programs that scenarios run, in the system's interpreter or in an environment of its own
// that holds a framework. Environments are optional: scripts/setup --with makes them.
#pragma once

#include <string>
#include <vector>

namespace headroom {

// `name` is "system" or an environment.
bool has_python(const std::string& name);

// The last line the program prints. Throws NotSupported where there is no such interpreter, Error
// with its last words where the program fails; `what` names it in messages.
std::string run_python(const std::string& name, std::vector<std::string> arguments,
                       const std::string& what);

}  // namespace headroom
