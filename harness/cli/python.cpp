#include "harness/cli/python.h"

#include <fmt/format.h>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/subprocess.h"

namespace headroom {

const std::vector<std::string>& report_modules() {
  static const std::vector<std::string> modules = {"jinja2", "jsonschema", "matplotlib",
                                                   "zstandard"};
  return modules;
}

const std::vector<std::string>& trace_modules() {
  static const std::vector<std::string> modules = {"numpy", "zstandard"};
  return modules;
}

std::vector<std::string> missing_modules(const std::string& python,
                                         const std::vector<std::string>& modules) {
  std::vector<std::string> argv = {python, "-c",
                                   "import importlib.util, sys\n"
                                   "print(*[m for m in sys.argv[1:] if importlib.util.find_spec(m) "
                                   "is None], sep='\\n', end='')"};
  argv.insert(argv.end(), modules.begin(), modules.end());
  try {
    const SubprocessResult said =
        run_subprocess({.argv = argv, .timeout = std::chrono::seconds{60}});
    if (said.ending != Ending::exited || said.code != 0) return modules;
    std::vector<std::string> missing;
    for (const std::string& module : modules)
      if (("\n" + said.output + "\n").find("\n" + module + "\n") != std::string::npos)
        missing.push_back(module);
    return missing;
  } catch (const DeviceError&) {
    return modules;
  }
}

std::string find_python(const std::vector<std::string>& modules) {
  for (const std::string& python : {std::string(kReportPython), std::string("/usr/bin/python3")})
    if (!python.empty() && missing_modules(python, modules).empty()) return python;
  return "";
}

}  // namespace headroom
