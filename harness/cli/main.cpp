// The headroom program: one command, one exit code, every error printed once.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "harness/base/text.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/text/print.h"
#include "harness/machine/contention.h"
#include "harness/machine/isolation.h"

namespace headroom {
namespace {

constexpr std::size_t kLongestMessage = 2'000;  // bytes

template <typename Type, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<Type, Types> || ...);
// Whether a command only reads and writes files, which other people may have made.
template <typename Options>
constexpr bool kReadsFilesOfOthers =
    kIsOneOf<Options, VerifyOptions, ReplayOptions, ExportOptions, LeaksOptions, ReportOptions,
             CompareOptions, MergeOptions, HistoryOptions>;

ExitCode execute(const Command& command) {
  struct Visitor {
    ExitCode operator()(const RunOptions& options) const { return run_command(options); }
    ExitCode operator()(const ListOptions& options) const { return list_command(options); }
    ExitCode operator()(const VerifyOptions& options) const { return verify_command(options); }
    ExitCode operator()(const ReplayOptions& options) const { return replay_command(options); }
    ExitCode operator()(const ExportOptions& options) const { return export_command(options); }
    ExitCode operator()(const PlanOptions& options) const { return plan_command(options); }
    ExitCode operator()(const SearchOptions& options) const { return search_command(options); }
    ExitCode operator()(const LeaksOptions& options) const { return leaks_command(options); }
    ExitCode operator()(const ReportOptions& options) const { return report_command(options); }
    ExitCode operator()(const DoctorOptions& options) const { return doctor_command(options); }
    ExitCode operator()(const CheckOptions& options) const { return check_command(options); }
    ExitCode operator()(const CompareOptions& options) const { return compare_command(options); }
    ExitCode operator()(const MergeOptions& options) const { return merge_command(options); }
    ExitCode operator()(const WatchOptions& options) const { return watch_command(options); }
    ExitCode operator()(const GpuOptions& options) const { return gpu_command(options); }
    ExitCode operator()(const CaptureOptions& options) const { return capture_command(options); }
    ExitCode operator()(const HistoryOptions& options) const { return history_command(options); }
    ExitCode operator()(const ExportStateOptions& options) const {
      return export_state_command(options);
    }
    ExitCode operator()(const SelftestOptions& options) const { return selftest_command(options); }
    ExitCode operator()(const SampleOptions& options) const { return sample_command(options); }
    ExitCode operator()(const TouchOptions& options) const { return touch_command(options); }
    ExitCode operator()(const PrintText& text) const {
      out::print("{}", text.text);
      return ExitCode::ok;
    }
  };
  return std::visit(
      [](const auto& options) {
        if constexpr (kReadsFilesOfOthers<std::decay_t<decltype(options)>>) {
          forbid_network();
          bound_memory();
        }
        return Visitor{}(options);
      },
      command);
}

[[noreturn]] void fail_to_print(int reason) {
  throw InputError(fmt::format("standard output cannot be written: {}", std::strerror(reason)));
}

// Writes what is still in a buffer, to detect a failed write.
void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_to_print(errno);
}

// Errors of the operating system are not reported as internal errors.
ExitCode executed(const std::vector<std::string>& arguments) try {
  const ExitCode code = execute(parse_command_line(arguments));
  flush_output();
  return code;
} catch (const std::filesystem::filesystem_error& error) {
  throw InputError(error.what());
} catch (const std::system_error& error) {
  if (std::ferror(stdout) != 0) fail_to_print(error.code().value());
  throw;
} catch (const std::bad_alloc&) {
  throw InputError("this machine, or a limit (ulimit -v), has no more memory for the program");
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  using headroom::ExitCode;
  namespace out = headroom::out;
  // A write beyond a file-size limit becomes an error instead of killing the process.
  std::signal(SIGXFSZ, SIG_IGN);
  headroom::bound_spinning();
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return static_cast<int>(headroom::executed(arguments));
  } catch (const headroom::Error& error) {
    // An argument or a name from a file may be as long as memory allows.
    const std::string message = headroom::printable_lines(error.what());
    out::print(stderr, "headroom: {}\n", headroom::shortened(message, headroom::kLongestMessage));
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    out::print(stderr,
               "headroom: internal error, a fault of the program itself: {}\n"
               "Please report it together with the command line.\n",
               error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
