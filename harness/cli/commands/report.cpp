// headroom report: passes run directories to the Python program that makes pages and exports.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/base/file.h"
#include "harness/base/interrupt.h"
#include "harness/base/scratch_directory.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/python.h"
#include "harness/cli/text/changes_json.h"
#include "harness/cli/text/print.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongestReport{10};

// Runs the Python module reports on `run` and returns what it printed: lines, the last ones paths.
std::string make_reports(const fs::path& run, const std::vector<std::string>& arguments) {
  std::string kind;  // "watch" or "gpu": a directory that has only one page; "" for a run
  for (const char* name : {"watch", "gpu"})
    if (fs::exists(run / fmt::format("{}.json", name))) kind = name;
  if (kind.empty() && !fs::exists(run / "run.json"))
    throw InputError(
        fmt::format("{}: not a run directory, there is no run.json in it; name one that headroom "
                    "run made, as in runs/RUN",
                    run.string()));
  if (!kind.empty() && !arguments.empty())
    throw InputError(
        fmt::format("{}: what headroom {} wrote has one page and no other formats; write it with: "
                    "headroom report {}",
                    run.string(), kind, run.string()));
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
  std::vector<std::string> words = {fs::absolute(run).string()};
  if (!kind.empty()) words.insert(words.begin(), kind);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const SubprocessResult said = run_own_module(python, "reports", words, kLongestReport);
  if (said.ending == Ending::interrupted) throw Interrupted("interrupted; " + again);
  if (said.ending == Ending::exited && said.code == static_cast<int>(ExitCode::usage))
    throw InputError(fmt::format("no report: {}{}", said.errors, again));
  if (said.ending == Ending::signalled)
    throw Error(fmt::format("{} was ended by {} while it wrote the report; {}", python,
                            signal_name(said.code), again));
  if (said.ending == Ending::timed_out)
    throw Error(fmt::format("the report took more than {} min; {}", kLongestReport.count(), again));
  if (said.code != 0)
    throw Error(fmt::format("{} failed to write the report:\n{}{}", python, said.errors, again));
  if (!said.errors.empty()) out::print(stderr, "{}", said.errors);
  std::string output = said.output;
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

}  // namespace

fs::path write_report(const fs::path& run) {
  const std::string output = make_reports(run, {});
  const std::size_t last = output.rfind('\n') + 1;
  out::print("{}", output.substr(0, last));
  return output.substr(last);
}

void write_memory_page(const fs::path& directory) {
  try {
    out::print(stderr, "  page    {}\n", write_report(directory).string());
  } catch (const Error& error) {
    out::print(stderr, "  page    none: {}\n", error.what());
  }
}

ExitCode report_command(const ReportOptions& options) {
  std::vector<std::string> arguments;
  for (const auto& [format, file] : options.files)
    if (!file.empty()) arguments.insert(arguments.end(), {"--" + format, fs::absolute(file)});
  if (!options.address.empty()) arguments.insert(arguments.end(), {"--address", options.address});
  if (options.second.empty()) {
    out::print("{}\n", make_reports(options.run, arguments));
    return ExitCode::ok;
  }
  const std::string text =
      changes_json(compare_runs(read_run(options.run), read_run(options.second)));
  const InterruptsCaught caught;  // an interrupt would leave the temporary directory behind
  const ScratchDirectory scratch;
  const fs::path changes = scratch.path() / "changes.json";
  write_file_durably(changes, text);
  arguments.insert(arguments.end(), {"--before", fs::absolute(options.run), "--changes", changes});
  out::print("{}\n", make_reports(options.second, arguments));
  return ExitCode::ok;
}

}  // namespace headroom
