#include "harness/results/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "harness/base/error.h"
#include "harness/results/run_differences.h"

namespace headroom {
namespace {

constexpr std::string_view kShardFlag = "--shard";

[[noreturn]] void refuse(const RunInfo& a, const RunInfo& b, std::string_view why,
                         std::string_view fix) {
  throw InputError(
      fmt::format("runs {} and {} cannot be merged: {}. {}", a.run_id, b.run_id, why, fix));
}

void require_shard(const RunInfo& run) {
  if (!run.shard)
    throw InputError(
        fmt::format("run {} is not a shard, so there is nothing to merge it with. Shards are made "
                    "with: headroom run {} --seed {} --shard 1/2",
                    run.run_id, run.suite, run.seed));
}

void require_same(const RunInfo& a, const RunInfo& b) {
  if (a.suite != b.suite)
    refuse(a, b, fmt::format("the suite is '{}' in one and '{}' in the other", a.suite, b.suite),
           "Merge shards of one suite");
  if (a.seed != b.seed)
    refuse(a, b, fmt::format("the seed is {} in one and {} in the other", a.seed, b.seed),
           "Run every shard with the same --seed");
  if (a.shard->count != b.shard->count)
    refuse(
        a, b,
        fmt::format("one is a shard of {} parts, the other of {}", a.shard->count, b.shard->count),
        "Run every shard with the same number after the '/'");
  if (*a.shard == *b.shard)
    refuse(a, b, fmt::format("both are shard {} of {}", a.shard->number, a.shard->count),
           "Name each shard once");
  if (const auto plan = plan_differences(a.experiments, b.experiments); !plan.empty())
    refuse(a, b, fmt::format("their experiments differ ({})", fmt::join(plan, ", ")),
           "Run every shard with the same suite file, axes, --filter and --max-pairs");
  if (a.headroom.executable_sha256 != b.headroom.executable_sha256)
    refuse(
        a, b,
        fmt::format("the programs differ (commit {} in one, {} in the other)",
                    a.headroom.commit.value_or("unknown"), b.headroom.commit.value_or("unknown")),
        "Run every shard with the same build");
  std::vector<std::string> changes;
  for (const auto& [what, first, second] : environment_differences(a, b))
    changes.push_back(fmt::format("{} is '{}' in one and '{}' in the other", what, first, second));
  if (!changes.empty())
    refuse(a, b, fmt::format("{}", fmt::join(changes, "; ")),
           "Run every shard on machines of one kind, set up alike");
}

// Returns the command line of the whole run.
std::vector<std::string> without_shard(const std::vector<std::string>& argv) {
  std::vector<std::string> whole;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i] == kShardFlag)
      ++i;
    else if (!argv[i].starts_with(kShardFlag))
      whole.push_back(argv[i]);
  }
  return whole;
}

MergedShard record_of(const RecordedRun& run) {
  return {.run_id = run.info.run_id,
          .shard = *run.info.shard,
          .status = run.info.status,
          .started = run.info.started,
          .finished = run.info.finished,
          .hostname_hash = run.info.machine.hostname_hash,
          .environment_id = run.info.environment_id,
          .best_probe_gflops = run.info.best_probe_gflops,
          .samples = static_cast<int>(run.samples.size())};
}

void add_data(std::vector<DataFile>& all, const std::vector<DataFile>& more) {
  for (const DataFile& file : more)
    if (std::none_of(all.begin(), all.end(), [&](const DataFile& known) {
          return known.path == file.path && known.sha256 == file.sha256;
        }))
      all.push_back(file);
}

}  // namespace

RunInfo merge_runs(const std::vector<RecordedRun>& shards) {
  for (const RecordedRun& run : shards) require_shard(run.info);
  for (const RecordedRun& run : shards)
    for (const RecordedRun& other : shards)
      if (&other < &run) require_same(other.info, run.info);
  RunInfo merged = shards.front().info;
  merged.argv = without_shard(merged.argv);
  merged.shard.reset();
  merged.data.clear();
  merged.planned_samples = 0;
  merged.cost = {};
  std::vector<Sample> samples;
  for (const RecordedRun& run : shards) {
    add_cost(merged.cost, run.info.cost);
    samples.insert(samples.end(), run.samples.begin(), run.samples.end());
    merged.shards.push_back(record_of(run));
    add_data(merged.data, run.info.data);
    merged.planned_samples += run.info.planned_samples;
    merged.started = std::min(merged.started, run.info.started);
    if (merged.finished) merged.finished = std::max(merged.finished, run.info.finished);
    if (run.info.status != RunStatus::finished) merged.status = RunStatus::interrupted;
    merged.best_probe_gflops = std::max(merged.best_probe_gflops, run.info.best_probe_gflops);
  }
  merged.cost.recording = summarize_recording(samples);
  std::sort(merged.shards.begin(), merged.shards.end(),
            [](const auto& a, const auto& b) { return a.shard.number < b.shard.number; });
  if (!missing_shards(merged).empty()) merged.status = RunStatus::interrupted;
  if (merged.status != RunStatus::finished) merged.finished.reset();
  return merged;
}

std::vector<int> missing_shards(const RunInfo& merged) {
  std::set<int> present;
  for (const MergedShard& shard : merged.shards) present.insert(shard.shard.number);
  std::vector<int> missing;
  for (int number = 1; number <= merged.shards.front().shard.count; ++number)
    if (!present.contains(number)) missing.push_back(number);
  return missing;
}

}  // namespace headroom
