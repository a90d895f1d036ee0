#include "harness/watch/watch_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/results/schema_check.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_object(const ProcessUsage& process) {
  return {{"pid", process.pid},
          {"command", process.command},
          {"resident_bytes", process.resident},
          {"high_water_mark_bytes", process.high_water_mark},
          {"swapped_bytes", process.swapped},
          {"proportional_bytes", or_null(process.proportional)}};
}

Json to_objects(const std::vector<ProcessUsage>& processes) {
  Json array = Json::array();
  for (const ProcessUsage& process : processes) array.push_back(to_object(process));
  return array;
}

Json to_object(const WatchPeak& peak) {
  return {{"bytes", peak.bytes}, {"time_s", peak.time_s}, {"processes", peak.processes}};
}

Json to_object(const WatchedGrowth& growth) {
  const LeakFinding& finding = growth.finding;
  return {{"metric", growth.metric},
          {"verdict", to_string(finding.verdict)},
          {"slope_bytes_per_min", finding.slope},
          {"low_bytes_per_min", finite(finding.interval.low)},
          {"high_bytes_per_min", finite(finding.interval.high)},
          {"detectable_bytes_per_min", finite(finding.detectable_slope)},
          {"warmup_growth_bytes", finding.warmup_growth},
          {"more_needed_min", or_null(finding.more_needed)}};
}

Json summary_object(const WatchRecord& record, const WatchSummary& summary) {
  Json growth = Json::array();
  for (const WatchedGrowth& one : summary.growth) growth.push_back(to_object(one));
  Json breach;
  if (record.breach)
    breach = {{"time_s", record.breach->time_s},
              {"held_bytes", record.breach->held},
              {"by_high_water_mark", record.breach->by_high_water_mark},
              {"process", to_object(record.breach->process)}};
  return {{"end",
           {{"words", end_in_words(record.end)},
            {"exit_status",
             record.end.known && record.end.signal == 0 ? Json(record.end.exit_status) : Json()},
            {"signal", record.end.signal != 0 ? Json(record.end.signal) : Json()}}},
          {"duration_s", record.duration_s},
          {"own_cpu_s", record.own_cpu_s},
          {"longest_gap_s", summary.longest_gap_s},
          {"samples_per_line", summary.samples_per_line},
          {"processes_seen", summary.processes_seen},
          {"resident_peak", to_object(summary.resident)},
          {"proportional_peak", summary.proportional ? to_object(*summary.proportional) : Json()},
          {"swapped_peak_bytes", summary.swapped_peak},
          {"gpu_peak", summary.gpu ? to_object(*summary.gpu) : Json()},
          {"gpu_is_of_the_tree", summary.gpu_is_of_the_tree},
          {"no_gpu_reason", record.no_gpu.empty() ? Json() : Json(record.no_gpu)},
          {"highest_process", summary.highest ? to_object(*summary.highest) : Json()},
          {"growth", growth},
          {"breach", breach},
          {"left_behind", to_objects(record.left_behind)}};
}

}  // namespace

std::string to_json(const WatchSample& sample) {
  return Json{{"schema_version", kSchemaVersion},
              {"kind", "watch_sample"},
              {"time_s", sample.time_s},
              {"resident_bytes", sample.resident},
              {"swapped_bytes", sample.swapped},
              {"proportional_bytes", or_null(sample.proportional)},
              {"gpu_used_bytes", sample.gpu ? Json(sample.gpu->used) : Json()},
              {"gpu_tree_bytes", sample.gpu ? or_null(sample.gpu->by_processes) : Json()},
              {"processes", to_objects(sample.processes)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const WatchHeader& header, const WatchRecord* record,
                    const WatchSummary* summary) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "watch"},
               {"command", header.command},
               {"pid", header.pid},
               {"started", header.started},
               {"interval_ms", header.plan.interval.count()},
               {"budget_bytes", or_null(header.plan.budget)},
               {"harmless_bytes_per_min", header.leak.harmless_slope},
               {"interval_level", header.leak.level},
               {"summary", Json()}};
  if (record != nullptr && summary != nullptr) json["summary"] = summary_object(*record, *summary);
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom
