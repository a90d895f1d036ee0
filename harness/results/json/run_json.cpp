// run.json, to and from.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "harness/base/error.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/json/experiment_json.h"
#include "harness/results/json/provenance_json.h"
#include "harness/results/run_info.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

std::string to_string(RunStatus status) {
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

RunStatus run_status_from(const std::string& text) {
  if (text == "finished") return RunStatus::finished;
  return text == "interrupted" ? RunStatus::interrupted : RunStatus::running;
}

Json cost_to_json(const RunCost& cost) {
  Json recording;
  if (cost.recording)
    recording = {{"ns_per_event", cost.recording->ns_per_event},
                 {"bytes_per_event", cost.recording->bytes_per_event},
                 {"share_of_step", cost.recording->share_of_step},
                 {"largest_share_of_step", cost.recording->largest_share_of_step}};
  return {{"wall_s", cost.wall_s},   {"steps_s", cost.steps_s},
          {"setup_s", cost.setup_s}, {"process_s", cost.process_s},
          {"probe_s", cost.probe_s}, {"first_touch_s", cost.first_touch_s},
          {"recording", recording}};
}

RunCost cost_from(const Json& json) {
  RunCost cost{.wall_s = json.at("wall_s").get<double>(),
               .steps_s = json.at("steps_s").get<double>(),
               .setup_s = json.at("setup_s").get<double>(),
               .process_s = json.at("process_s").get<double>(),
               .probe_s = json.at("probe_s").get<double>(),
               .first_touch_s = json.at("first_touch_s").get<double>(),
               .recording = std::nullopt};
  if (const Json& recording = json.at("recording"); !recording.is_null())
    cost.recording = {.ns_per_event = recording.at("ns_per_event").get<double>(),
                      .bytes_per_event = recording.at("bytes_per_event").get<double>(),
                      .share_of_step = recording.at("share_of_step").get<double>(),
                      .largest_share_of_step = recording.at("largest_share_of_step").get<double>()};
  return cost;
}

AddedFor added_for(const std::string& text) {
  for (const AddedFor reason : {AddedFor::failed, AddedFor::dispersion})
    if (text == to_string(reason)) return reason;
  return AddedFor::inconclusive;
}

Json addition_to_json(const Addition& addition) {
  return {{"experiment", addition.experiment},
          {"reason", to_string(addition.reason)},
          {"added", addition.added},
          {"first_block", addition.first_block},
          {"blocks", addition.blocks}};
}

Addition addition_from(const Json& json) {
  return {.experiment = json.at("experiment").get<std::string>(),
          .reason = added_for(json.at("reason").get<std::string>()),
          .added = json.at("added").get<std::string>(),
          .first_block = json.at("first_block").get<int>(),
          .blocks = json.at("blocks").get<int>()};
}

Json shard_to_json(const Shard& shard) {
  return {{"number", shard.number}, {"count", shard.count}};
}

Shard shard_from(const Json& json) {
  return {.number = json.at("number").get<int>(), .count = json.at("count").get<int>()};
}

Json merged_shard_to_json(const MergedShard& merged) {
  return {{"run_id", merged.run_id},
          {"shard", shard_to_json(merged.shard)},
          {"status", to_string(merged.status)},
          {"started", merged.started},
          {"finished", value_or_null(merged.finished)},
          {"hostname_hash", merged.hostname_hash},
          {"environment_id", merged.environment_id},
          {"best_probe_gflops", value_or_null(merged.best_probe_gflops)},
          {"samples", merged.samples}};
}

MergedShard merged_shard_from(const Json& json) {
  return {.run_id = json.at("run_id").get<std::string>(),
          .shard = shard_from(json.at("shard")),
          .status = run_status_from(json.at("status").get<std::string>()),
          .started = json.at("started").get<std::string>(),
          .finished = optional_from<std::string>(json.at("finished")),
          .hostname_hash = json.at("hostname_hash").get<std::string>(),
          .environment_id = json.at("environment_id").get<std::string>(),
          .best_probe_gflops = optional_from<double>(json.at("best_probe_gflops")),
          .samples = json.at("samples").get<int>()};
}

}  // namespace

std::string to_string(AddedFor reason) {
  if (reason == AddedFor::dispersion) return "dispersion";
  return reason == AddedFor::failed ? "failed" : "inconclusive";
}

std::string to_json(const RunInfo& info) {
  Json data = Json::array();
  for (const DataFile& file : info.data)
    data.push_back({{"path", file.path},
                    {"sha256", file.sha256},
                    {"bytes", file.bytes},
                    {"origin", file.origin}});
  Json experiments = Json::array();
  for (const Experiment& experiment : info.experiments)
    experiments.push_back(experiment_to_json(experiment));
  Json shards = Json::array();
  for (const MergedShard& shard : info.shards) shards.push_back(merged_shard_to_json(shard));
  Json additions = Json::array();
  for (const Addition& addition : info.additions) additions.push_back(addition_to_json(addition));
  const Json json = {{"schema_version", kSchemaVersion},
                     {"kind", "run"},
                     {"run_id", info.run_id},
                     {"suite", info.suite},
                     {"claims", info.claims},
                     {"argv", info.argv},
                     {"directory", info.directory},
                     {"seed", info.seed},
                     {"started", info.started},
                     {"finished", value_or_null(info.finished)},
                     {"status", to_string(info.status)},
                     {"headroom", build_to_json(info.headroom)},
                     {"libraries", info.libraries},
                     {"machine", machine_to_json(info.machine)},
                     {"environment", info.environment},
                     {"environment_id", info.environment_id},
                     {"data", data},
                     {"best_probe_gflops", value_or_null(info.best_probe_gflops)},
                     {"planned_samples", info.planned_samples},
                     {"experiments", experiments},
                     {"shard", info.shard ? shard_to_json(*info.shard) : Json()},
                     {"shards", shards},
                     {"additions", additions},
                     {"cost", cost_to_json(info.cost)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunInfo run_info_from_json(const std::string& text) try {
  const Json json = Json::parse(text);
  RunInfo info{.run_id = json.at("run_id").get<std::string>(),
               .suite = json.at("suite").get<std::string>(),
               .claims = json.at("claims").get<std::vector<std::string>>(),
               .argv = json.at("argv").get<std::vector<std::string>>(),
               .directory = json.value("directory", ""),
               .seed = json.at("seed").get<std::uint64_t>(),
               .started = json.at("started").get<std::string>(),
               .finished = optional_from<std::string>(json.at("finished")),
               .status = run_status_from(json.at("status").get<std::string>()),
               .headroom = build_from(json.at("headroom")),
               .libraries = json.at("libraries").get<std::map<std::string, std::string>>(),
               .machine = machine_from(json.at("machine")),
               .environment = json.at("environment").get<std::map<std::string, std::string>>(),
               .environment_id = json.at("environment_id").get<std::string>(),
               .data = {},
               .best_probe_gflops = optional_from<double>(json.at("best_probe_gflops")),
               .planned_samples = json.at("planned_samples").get<int>(),
               .experiments = {},
               .shard = std::nullopt,
               .shards = {},
               .additions = {},
               .cost = {}};
  if (const auto cost = json.find("cost"); cost != json.end()) info.cost = cost_from(*cost);
  if (const Json shard = json.value("shard", Json()); !shard.is_null())
    info.shard = shard_from(shard);
  for (const Json& shard : json.value("shards", Json::array()))
    info.shards.push_back(merged_shard_from(shard));
  for (const Json& addition : json.value("additions", Json::array()))
    info.additions.push_back(addition_from(addition));
  for (const Json& file : json.at("data"))
    info.data.push_back({.path = file.at("path").get<std::string>(),
                         .sha256 = file.at("sha256").get<std::string>(),
                         .bytes = file.at("bytes").get<Bytes>(),
                         .origin = file.at("origin").get<std::string>()});
  for (const Json& experiment : json.at("experiments"))
    info.experiments.push_back(experiment_from(experiment));
  return info;
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a run record: {}", error.what()));
}

std::string timestamp_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace headroom
