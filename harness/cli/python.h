// Finds and runs the Python interpreter for reports and importers.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace headroom {

// The modules needed to make reports.
const std::vector<std::string>& report_modules();
// The modules needed to read and write traces.
const std::vector<std::string>& trace_modules();

// An interpreter with all of `modules`: $HEADROOM_PYTHON, else the one the build found, else
// Debian's. "" when there is none.
std::string find_python(const std::vector<std::string>& modules);

// Returns the members of `modules` that `python` cannot import; all of them when it does not start.
std::vector<std::string> missing_modules(const std::string& python,
                                         const std::vector<std::string>& modules);

// Runs the Python module `module` of Headroom's own folder. The interpreter imports nothing from
// the user's working directory or site-packages and ignores the variables PYTHON*. Its working
// directory is Headroom's own folder, so paths among `arguments` must be absolute. The module reads
// files of other people, so it does not get the user's environment.
SubprocessResult run_own_module(const std::string& python, const std::string& module,
                                const std::vector<std::string>& arguments,
                                std::chrono::milliseconds timeout);

}  // namespace headroom
