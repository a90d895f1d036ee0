// headroom merge: combines the shards of a run into one ordinary run directory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/base/file.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/run_plan.h"
#include "harness/cli/text/print.h"
#include "harness/results/merge.h"
#include "harness/results/run_directory.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

void copy_traces(const fs::path& from, const fs::path& to) {
  if (!fs::is_directory(from)) return;
  // Each trace belongs to a configuration's first block, which is in exactly one shard.
  for (const auto& trace : fs::directory_iterator(from))
    fs::copy_file(trace.path(), to / trace.path().filename(), fs::copy_options::skip_existing);
}

void tell_what_is_missing(const RunInfo& merged, const fs::path& run) {
  if (merged.status == RunStatus::finished) return;
  const auto missing = missing_shards(merged);
  if (!missing.empty())
    out::print("Missing: shard {} of {}.\n", fmt::join(missing, ", "),
               merged.shards.front().shard.count);
  for (const MergedShard& shard : merged.shards)
    if (shard.status != RunStatus::finished) out::print("Not finished: {}.\n", shard.run_id);
  out::print("To take the missing samples, run on one of the machines: headroom run --resume {}\n",
             run.string());
}

}  // namespace

ExitCode merge_command(const MergeOptions& options) {
  std::vector<RecordedRun> shards;
  for (const fs::path& path : options.shards) shards.push_back(read_run(path));
  RunInfo info = merge_runs(shards);
  RunDirectory directory = RunDirectory::create(options.out, info.suite + "-merged");
  const fs::path& run = directory.path();
  info.run_id = run.filename().string();
  info.directory = fs::relative(options.shards.front() / info.directory, run).string();
  fs::create_directory(run / "shards");
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const Sample& sample : shards[i].samples) directory.append(sample);
    copy_traces(options.shards[i] / "traces", run / "traces");
    write_file_durably(run / "shards" / (shards[i].info.run_id + ".json"),
                       read_file(options.shards[i] / "run.json"));
  }
  directory.write(info);
  tell_what_is_missing(info, run);
  out::print("Results: {}\n", run.string());
  if (options.samples_only) return ExitCode::ok;
  write_verdicts(run);
  out::print("Report:\n{}\n", write_report(run).string());
  return ExitCode::ok;
}

}  // namespace headroom
