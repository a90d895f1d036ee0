// The Python that reports and importers need.
#pragma once

#include <string>
#include <vector>

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

}  // namespace headroom
