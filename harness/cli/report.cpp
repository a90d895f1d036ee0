// headroom report: hands a run directory to the Python that makes the page.
#include <fmt/format.h>

#include "harness/base/home.h"
#include "harness/base/subprocess.h"
#include "harness/cli/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/python.h"

namespace headroom {

std::filesystem::path write_report(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "run.json"))
    throw InputError(
        fmt::format("{}: not a run directory, there is no run.json in it", run.string()));
  const std::string again =
      fmt::format("the results in {} are complete; write their report with: headroom report {}",
                  run.string(), run.string());
  const std::string python = find_python(report_modules());
  if (python.empty())
    throw InputError(
        fmt::format("no Python with {} was found, so there is no report. Install them "
                    "(Debian: apt install python3-jinja2 python3-jsonschema "
                    "python3-matplotlib python3-zstandard); {}",
                    fmt::join(report_modules(), ", "), again));
  const SubprocessResult said =
      run_subprocess({.argv = {python, "-m", "reports", std::filesystem::absolute(run).string()},
                      .timeout = std::chrono::minutes{10},
                      .environment = {"PYTHONPATH=" + headroom_home().string()}});
  if (said.ending == Ending::interrupted) throw Interrupted("interrupted; " + again);
  if (said.ending == Ending::exited && said.code == static_cast<int>(ExitCode::usage))
    throw InputError(fmt::format("no report: {}{}", said.errors, again));
  if (said.ending != Ending::exited || said.code != 0)
    throw Error(fmt::format("{} -m reports failed:\n{}{}", python, said.errors, again));
  if (!said.errors.empty()) fmt::print(stderr, "{}", said.errors);
  std::string path = said.output;
  while (!path.empty() && path.back() == '\n') path.pop_back();
  const std::size_t last = path.rfind('\n') + 1;
  fmt::print("{}", path.substr(0, last));
  return path.substr(last);
}

ExitCode report_command(const ReportOptions& options) {
  fmt::print("{}\n", write_report(options.run).string());
  return ExitCode::ok;
}

}  // namespace headroom
