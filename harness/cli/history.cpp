#include "harness/cli/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <system_error>

#include "harness/base/error.h"
#include "harness/base/interrupt.h"
#include "harness/base/scratch_directory.h"
#include "harness/cli/python.h"
#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kLongestRead{10};

void check_is_file(const fs::path& file) {
  if (!fs::is_regular_file(file))
    throw InputError(
        fmt::format("{}: is not a file; name a Headroom trace, a PyTorch memory "
                    "snapshot, an RMM log, a MiniMalloc CSV or an STAlloc text",
                    file.string()));
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return fs::equivalent(a, b, missing);
}

}  // namespace

const std::vector<std::string>& history_formats() {
  static const std::vector<std::string> formats = {"headroom", "pytorch", "rmm", "minimalloc",
                                                   "stalloc"};
  return formats;
}

void convert_history(const fs::path& file, const fs::path& out, const std::string& format) {
  check_is_file(file);
  const InterruptsCaught caught;  // an interrupt would leave the unfinished file
  const fs::path unfinished = out.string() + ".unfinished";  // as the importer names it
  for (const fs::path& written : {out, unfinished})
    if (is_same_file(file, written))
      throw InputError(
          fmt::format("{}: would be overwritten; name another file with -o", file.string()));
  const std::string python = find_python(trace_modules());
  if (python.empty())
    throw InputError(
        fmt::format("{}: other programs' formats need /usr/bin/python3 with {} (Debian: apt "
                    "install python3-numpy python3-zstandard)",
                    file.string(), fmt::join(trace_modules(), " and ")));
  const SubprocessResult said = run_own_module(
      python, "harness.trace.formats",
      {fs::absolute(file).string(), fs::absolute(out).string(), "--to", format}, kLongestRead);
  if (said.ending == Ending::exited && said.code == 0) return;
  std::error_code ignored;
  fs::remove(unfinished, ignored);  // a killed importer leaves it behind
  std::string why = said.errors;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  caught.check();
  if (said.ending == Ending::interrupted) throw Interrupted("interrupted");
  const bool stopped =
      said.ending == Ending::signalled && (said.code == SIGXCPU || said.code == SIGKILL);
  if (said.ending == Ending::timed_out || stopped)
    throw InputError(fmt::format(
        "{}: takes more time or memory to read than an undamaged file of this size would",
        file.string()));
  if (said.ending == Ending::signalled)
    throw InputError(
        fmt::format("{}: ended the program that reads it ({}); it is damaged, or "
                    "nested more deeply than any history",
                    file.string(), signal_name(said.code)));
  if (said.code == static_cast<int>(ExitCode::usage)) throw InputError(why);
  throw Error(fmt::format("{} failed to read {}:\n{}", python, file.string(), why));
}

History read_history(const fs::path& file) {
  check_is_file(file);
  const auto read = [](const std::string& trace) {
    return History{.trace = read_trace(trace), .placement = read_placement(trace)};
  };
  if (is_trace(file.string())) return read(file.string());
  const InterruptsCaught caught;  // an interrupt would leave the temporary directory behind
  const ScratchDirectory directory;
  const fs::path converted = directory.path() / (std::string("converted") + kTraceExtension);
  convert_history(file, converted, "headroom");
  History history;
  try {
    history = read(converted.string());
  } catch (const InputError& error) {
    // The user knows the file by another name.
    std::string text = error.what();
    if (text.starts_with(converted.string()))
      text.replace(0, converted.string().size(), file.string());
    throw InputError(text);
  }
  caught.check();
  return history;
}

}  // namespace headroom
