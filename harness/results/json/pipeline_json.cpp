#include "harness/results/json/pipeline_json.h"

namespace headroom {
namespace {

constexpr const char* kMeasured = "measured";
constexpr const char* kEstimated = "estimated";

Json to_json(const StageReport& stage, PipelineRecord::Basis basis) {
  const bool measured = basis == PipelineRecord::Basis::measured;
  return {{"name", stage.name},
          {"elements", measured ? Json(stage.elements) : Json()},
          {"wait_ns", measured ? Json(stage.wait_ns) : Json()},
          {"host_bytes_peak", value_or_null(stage.host_bytes_peak)},
          {"counters", Json(stage.counters)}};
}

StageReport stage_from(const Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .elements = optional_from<std::uint64_t>(json.at("elements")).value_or(0),
          .wait_ns = optional_from<std::uint64_t>(json.at("wait_ns")).value_or(0),
          .host_bytes_peak = optional_from<Bytes>(json.at("host_bytes_peak")),
          .counters = json.at("counters").get<std::map<std::string, std::uint64_t>>()};
}

}  // namespace

Json pipeline_to_json(const PipelineRecord& pipeline) {
  if (pipeline.stages.empty()) return nullptr;
  Json stages = Json::array();
  for (const StageReport& stage : pipeline.stages) stages.push_back(to_json(stage, pipeline.basis));
  const bool measured = pipeline.basis == PipelineRecord::Basis::measured;
  return {{"basis", measured ? kMeasured : kEstimated},
          {"stages", stages},
          {"host_bytes_after_step", pipeline.host_bytes_after_step}};
}

PipelineRecord pipeline_from_json(const Json& json) {
  PipelineRecord pipeline;
  if (json.is_null()) return pipeline;
  pipeline.basis = json.at("basis").get<std::string>() == kMeasured
                       ? PipelineRecord::Basis::measured
                       : PipelineRecord::Basis::estimated;
  for (const Json& stage : json.at("stages")) pipeline.stages.push_back(stage_from(stage));
  json.at("host_bytes_after_step").get_to(pipeline.host_bytes_after_step);
  return pipeline;
}

}  // namespace headroom
