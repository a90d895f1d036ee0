// headroom watch: follows the memory of a command, or of a running process. All its messages go to
// standard error, because standard output belongs to the command.
#include <fmt/format.h>

#include "harness/base/file.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/record_directory.h"
#include "harness/cli/text/print.h"
#include "harness/results/run_info.h"
#include "harness/watch/timeline.h"
#include "harness/watch/watch_json.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

ForeignProcess open_process(const WatchOptions& options) {
  return options.pid ? ForeignProcess::follow(*options.pid)
                     : ForeignProcess::start(options.command);
}

ExitCode exit_code_of(const WatchOptions& options, const WatchRecord& record,
                      const WatchSummary& summary) {
  if (record.breach) return ExitCode::over_budget;
  const int status = record.end.known ? record.end.shell_status() : 0;
  if (status == 0 && options.fail_on_leak && summary.has_leak()) return ExitCode::leak_found;
  return static_cast<ExitCode>(status);
}

}  // namespace

ExitCode watch_command(const WatchOptions& options) {
  const RecordDirectory records(options.out, "watch");
  const fs::path& directory = records.path();
  Timeline timeline(directory / "timeline.jsonl");
  WatchHeader header{.command = options.command,
                     .pid = 0,
                     .started = timestamp_now(),
                     .plan = options.plan,
                     .leak = options.leak};
  ForeignProcess process = open_process(options);
  header.pid = process.pid();
  ProcessTree tree = options.pid ? ProcessTree(*options.pid, Root::included)
                                 : ProcessTree(::getpid(), Root::left_out);
  write_file_durably(directory / "watch.json", to_json(header, nullptr, nullptr));
  WatchSummarizer summarizer(options.leak);
  const WatchRecord record = watch(
      process, tree, options.plan,
      [&](const WatchSample& sample) {
        timeline.add(sample);
        summarizer.add(sample);
      },
      [&](const BudgetBreach& breach) {
        out::print(stderr, "headroom watch: over budget at {:.1f} s: {} held, {} allowed{}\n",
                   breach.time_s, format_bytes(breach.held), format_bytes(*options.plan.budget),
                   options.plan.stop_over_budget ? "; stopping it" : "");
      });
  timeline.finish();
  WatchSummary summary = summarizer.summary();
  summary.samples_per_line = timeline.samples_per_line();
  write_file_durably(directory / "watch.json", to_json(header, &record, &summary));
  out::print(stderr, "headroom watch: {}", to_words(summary, record, options.plan, options.leak));
  if (!timeline.is_whole())
    out::print(stderr, "  {:<8}{} is cut off: it could not be written\n", "files",
               (directory / "timeline.jsonl").string());
  else
    out::print(stderr, "  {:<8}{}\n", "files", directory.string());
  if (options.page) write_memory_page(directory);
  return exit_code_of(options, record, summary);
}

}  // namespace headroom
