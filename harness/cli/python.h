// The Python that reports and importers need.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/base/subprocess.h"

namespace headroom {

// Modules the report is made with.
const std::vector<std::string>& report_modules();
// Modules that reading and writing traces takes.
const std::vector<std::string>& trace_modules();

// An interpreter with all of `modules`: the one the build found, else Debian's. "" when there is
// none.
std::string find_python(const std::vector<std::string>& modules);

// Those of `modules` that `python` cannot import; all of them when it does not start.
std::vector<std::string> missing_modules(const std::string& python,
                                         const std::vector<std::string>& modules);

// Runs the Python module `module` of Headroom's own folder. Whatever lies in the working directory,
// the user's site and the variables PYTHON* is neither imported nor read, and the working directory
// is Headroom's own folder: paths among `arguments` must be absolute.
SubprocessResult run_own_module(const std::string& python, const std::string& module,
                                const std::vector<std::string>& arguments,
                                std::chrono::milliseconds timeout);

}  // namespace headroom
