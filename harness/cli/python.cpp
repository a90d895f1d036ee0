#include "harness/cli/python.h"

#include <cstdlib>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/home.h"

namespace headroom {
namespace {

// Isolated mode. `-m` and a plain `-c` search the working directory first and would import an
// untrusted csv.py from there; -P needs a newer Python.
constexpr const char* kIsolated = "-I";

// Does the same as `-m module`, with Headroom's folder in place of the working directory.
constexpr const char* kRunModule =
    "import runpy, sys\n"
    "home, module = sys.argv[1:3]\n"
    "del sys.argv[:2]\n"
    "sys.path.insert(0, home)\n"
    "runpy.run_module(module, run_name='__main__', alter_sys=True)\n";

}  // namespace

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
  std::vector<std::string> argv = {python, kIsolated, "-c",
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

SubprocessResult run_own_module(const std::string& python, const std::string& module,
                                const std::vector<std::string>& arguments,
                                std::chrono::milliseconds timeout) {
  const std::filesystem::path home = std::filesystem::absolute(headroom_home());
  std::vector<std::string> argv = {python, kIsolated, "-c", kRunModule, home.string(), module};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run_subprocess(
      {.argv = argv, .timeout = timeout, .untrusted_input = true, .directory = home});
}

std::string find_python(const std::vector<std::string>& modules) {
  const char* named = std::getenv("HEADROOM_PYTHON");
  for (const std::string& python : {std::string(named == nullptr ? "" : named),
                                    std::string(kReportPython), std::string("/usr/bin/python3")})
    if (!python.empty() && missing_modules(python, modules).empty()) return python;
  return "";
}

}  // namespace headroom
