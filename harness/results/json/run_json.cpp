// Reading and writing run.json.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/json/experiment_json.h"
#include "harness/results/json/provenance_json.h"
#include "harness/results/json/record.h"
#include "harness/results/run_info.h"
#include "harness/results/schema_check.h"

namespace headroom {
static std::string to_string(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "running";
    case RunStatus::finished:
      return "finished";
    case RunStatus::interrupted:
      return "interrupted";
  }
  return "running";
}

std::string to_string(AddedFor reason) {
  if (reason == AddedFor::dispersion) return "dispersion";
  return reason == AddedFor::failed ? "failed" : "inconclusive";
}

template <>
inline constexpr auto kNames<RunStatus> =
    std::array{RunStatus::finished, RunStatus::interrupted, RunStatus::running};
template <>
inline constexpr auto kNames<AddedFor> =
    std::array{AddedFor::failed, AddedFor::dispersion, AddedFor::inconclusive};

template <typename Visitor, RecordOf<RecordingSummary> Record>
void fields(Visitor& visit, Record& recording) {
  visit.required("ns_per_event", recording.ns_per_event);
  visit.required("bytes_per_event", recording.bytes_per_event);
  visit.required("share_of_step", recording.share_of_step);
  visit.required("largest_share_of_step", recording.largest_share_of_step);
}

template <typename Visitor, RecordOf<RunCost> Record>
void fields(Visitor& visit, Record& cost) {
  visit.required("wall_s", cost.wall_s);
  visit.required("steps_s", cost.steps_s);
  visit.required("setup_s", cost.setup_s);
  visit.required("process_s", cost.process_s);
  visit.required("probe_s", cost.probe_s);
  visit.required("first_touch_s", cost.first_touch_s);
  visit.required("recording", cost.recording);
}

template <typename Visitor, RecordOf<Addition> Record>
void fields(Visitor& visit, Record& addition) {
  visit.required("experiment", addition.experiment);
  visit.required("reason", addition.reason);
  visit.required("added", addition.added);
  visit.required("first_block", addition.first_block);
  visit.required("blocks", addition.blocks);
}

template <typename Visitor, RecordOf<Shard> Record>
void fields(Visitor& visit, Record& shard) {
  visit.required("number", shard.number);
  visit.required("count", shard.count);
}

template <typename Visitor, RecordOf<MergedShard> Record>
void fields(Visitor& visit, Record& merged) {
  visit.required("run_id", merged.run_id);
  visit.required("shard", merged.shard);
  visit.required("status", merged.status);
  visit.required("started", merged.started);
  visit.required("finished", merged.finished);
  visit.required("hostname_hash", merged.hostname_hash);
  visit.required("environment_id", merged.environment_id);
  visit.required("best_probe_gflops", merged.best_probe_gflops);
  visit.required("samples", merged.samples);
}

template <typename Visitor, RecordOf<DataFile> Record>
void fields(Visitor& visit, Record& file) {
  visit.required("path", file.path);
  visit.required("sha256", file.sha256);
  visit.required("bytes", file.bytes);
  visit.required("origin", file.origin);
}

template <typename Visitor, RecordOf<RunInfo> Record>
void fields(Visitor& visit, Record& info) {
  visit.kind("run");
  visit.required("run_id", info.run_id);
  visit.required("suite", info.suite);
  visit.required("claims", info.claims);
  visit.required("argv", info.argv);
  visit.later("directory", info.directory);
  visit.required("seed", info.seed);
  visit.required("started", info.started);
  visit.required("finished", info.finished);
  visit.required("status", info.status);
  visit.required("headroom", info.headroom);
  visit.required("libraries", info.libraries);
  visit.required("machine", info.machine);
  visit.required("environment", info.environment);
  visit.required("environment_id", info.environment_id);
  visit.required("data", info.data);
  visit.required("best_probe_gflops", info.best_probe_gflops);
  visit.required("planned_samples", info.planned_samples);
  visit.required("experiments", info.experiments);
  visit.later("shard", info.shard);
  visit.later("shards", info.shards);
  visit.later("additions", info.additions);
  visit.later("cost", info.cost);
}

std::string to_json(const RunInfo& info) {
  return value_to_json(info).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunInfo run_info_from_json(const std::string& text) try {
  auto info = value_of<RunInfo>(Json::parse(text));
  // Both become parts of paths when runs are merged and stored.
  for (const std::string& name : {info.run_id, info.suite})
    if (!is_file_name(name))
      throw InputError(fmt::format("'{}' is not a valid name of a run or suite", name));
  return info;
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a run record: {}", error.what()));
}

std::string timestamp_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace headroom
