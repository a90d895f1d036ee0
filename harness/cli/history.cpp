#include "harness/cli/history.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/scratch_directory.h"
#include "harness/cli/python.h"
#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

void check_is_file(const fs::path& file) {
  if (!fs::is_regular_file(file))
    throw InputError(
        fmt::format("{}: is no file; name a Headroom trace, a PyTorch memory "
                    "snapshot, an RMM log, a MiniMalloc CSV or an STAlloc text",
                    file.string()));
}

}  // namespace

const std::vector<std::string>& history_formats() {
  static const std::vector<std::string> formats = {"headroom", "pytorch", "rmm", "minimalloc",
                                                   "stalloc"};
  return formats;
}

void convert_history(const fs::path& file, const fs::path& out, const std::string& format) {
  check_is_file(file);
  const std::string python = find_python(trace_modules());
  if (python.empty())
    throw InputError(
        fmt::format("{}: other programs' formats need /usr/bin/python3 with {} (Debian: apt "
                    "install python3-numpy python3-zstandard)",
                    file.string(), fmt::join(trace_modules(), " and ")));
  const SubprocessResult said =
      run_own_module(python, "harness.trace.formats",
                     {fs::absolute(file).string(), fs::absolute(out).string(), "--to", format},
                     std::chrono::minutes{10});
  if (said.ending == Ending::interrupted) throw Interrupted("interrupted");
  std::string why = said.errors;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  if (said.ending == Ending::exited && said.code == static_cast<int>(ExitCode::usage))
    throw InputError(why);
  if (said.ending != Ending::exited || said.code != 0)
    throw Error(fmt::format("{} failed to read the file:\n{}", python, why));
}

History read_history(const fs::path& file) {
  check_is_file(file);
  const auto read = [](const std::string& trace) {
    return History{.trace = read_trace(trace), .placement = read_placement(trace)};
  };
  if (is_trace(file.string())) return read(file.string());
  const ScratchDirectory directory;
  const fs::path converted = directory.path() / (std::string("converted") + kTraceExtension);
  convert_history(file, converted, "headroom");
  return read(converted.string());
}

}  // namespace headroom
