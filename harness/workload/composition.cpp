// Checks which compositions of stages are valid and adds the stages that a spec leaves implicit.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

const StageKind& kind_of(const Spec& stage) {
  return Registry<StageKind>::instance().find(stage.name());
}

bool is_source(const Spec& stage) {
  return kind_of(stage).record_source || kind_of(stage).batch_source;
}
bool is_of_records_only(const Spec& stage) {
  return !kind_of(stage).over_batches && !kind_of(stage).batch_source;
}
bool is_of_batches_only(const Spec& stage) {
  return kind_of(stage).over_batches && !kind_of(stage).over_records;
}
bool collects(const Spec& stage) { return static_cast<bool>(kind_of(stage).to_batches); }

[[noreturn]] void refuse(const Spec& spec, const std::string& why) {
  throw InputError(fmt::format("pipeline {}: {}", spec.to_string(), why));
}

void check_each(const std::vector<Spec>& stages) {
  for (const Spec& stage : stages) {
    stage.require_known(kind_of(stage).parameters);
    if (kind_of(stage).check) kind_of(stage).check(stage);
  }
}

void add_source(const Spec& spec, std::vector<Spec>& stages) {
  for (std::size_t i = 0; i + 1 < stages.size(); ++i)
    if (is_source(stages[i]))
      refuse(spec, fmt::format("'{}' is a source and must come last", stages[i].name()));
  if (is_source(stages.back())) return;
  stages.emplace_back(std::any_of(stages.begin(), stages.end(), is_of_records_only) ? "memory"
                                                                                    : "direct");
}

// Adds an implicit `batch` stage behind all stages that work on batches only.
void add_batch(std::vector<Spec>& stages) {
  if (std::any_of(stages.begin(), stages.end(), collects)) return;
  stages.insert(std::find_if_not(stages.begin(), stages.end(), is_of_batches_only), Spec("batch"));
}

void add_map(const Spec& spec, std::vector<Spec>& stages) {
  const auto maps = std::count_if(stages.begin(), stages.end(),
                                  [](const Spec& stage) { return stage.name() == "map"; });
  if (maps > 1) refuse(spec, "'map' decodes records, and can do so only once");
  if (maps == 0)
    stages.insert(std::find_if(stages.begin(), stages.end(), collects) + 1, Spec("map"));
}

void check_outermost(const Spec& spec, const std::vector<Spec>& stages) {
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (kind_of(stages[i]).rebuilds)
      refuse(spec, fmt::format("'{}' rebuilds the stages behind it, and must come first",
                               stages[i].name()));
    if (kind_of(stages[i]).staged_batches)
      refuse(spec,
             fmt::format("'{}' lends batches that are copied to the device, so it must come first",
                         stages[i].name()));
  }
}

void check_places(const Spec& spec, const std::vector<Spec>& stages) {
  const auto batch = std::find_if(stages.begin(), stages.end(), collects);
  if (std::count_if(stages.begin(), stages.end(), collects) > 1)
    refuse(spec, "'batch' combines records, and can do so only once");
  for (auto stage = stages.begin(); stage != stages.end() - 1; ++stage) {
    if (stage < batch && !kind_of(*stage).over_batches)
      refuse(spec,
             fmt::format("'{}' works on records and must come after batch and all stages that work "
                         "on batches",
                         stage->name()));
    if (stage > batch && !kind_of(*stage).over_records)
      refuse(spec, fmt::format(
                       "'{}' works on batches and must come before all stages that work on records",
                       stage->name()));
  }
}

// Refuses a cache in front of a stage that loads records anyway: it could save nothing.
void check_savings(const Spec& spec, const std::vector<Spec>& stages) {
  for (auto saver = stages.begin(); saver != stages.end(); ++saver) {
    if (!kind_of(*saver).saves_loading) continue;
    const auto loader = std::find_if(saver + 1, stages.end(), [](const Spec& stage) {
      return kind_of(stage).loads_ahead && kind_of(stage).loads_ahead(stage);
    });
    if (loader != stages.end())
      refuse(spec,
             fmt::format("'{}' would keep what '{}' behind it loads anyway; put it behind '{}'",
                         saver->name(), loader->name(), loader->name()));
  }
}

}  // namespace

std::vector<Spec> pipeline_stages(const Spec& spec) {
  std::vector<Spec> stages = {Spec(spec.name(), spec.parameters())};
  stages.insert(stages.end(), spec.inner().begin(), spec.inner().end());
  check_each(stages);
  check_outermost(spec, stages);
  add_source(spec, stages);
  if (kind_of(stages.back()).batch_source) {
    for (auto stage = stages.begin(); stage != stages.end() - 1; ++stage)
      if (!kind_of(*stage).over_batches)
        refuse(spec, fmt::format("'{}' works on records, but '{}' delivers whole batches; use "
                                 "memory or stream instead",
                                 stage->name(), stages.back().name()));
    return stages;
  }
  add_batch(stages);
  add_map(spec, stages);
  check_places(spec, stages);
  check_savings(spec, stages);
  return stages;
}

void check_pipeline(const Spec& spec) { pipeline_stages(spec); }

void check_pipeline(const Spec& spec, const Workload& workload) {
  const std::vector<Spec> stages = pipeline_stages(spec);
  const std::string why = workload.why_no_records();
  if (kind_of(stages.back()).record_source && !why.empty())
    throw NotSupported(
        fmt::format("pipeline {}: {}; use direct, with stages that work on batches in front, as in "
                    "prefetch(2)|direct",
                    spec.to_string(), why));
}

std::size_t staged_batches(const Spec& spec) {
  const Spec outermost = pipeline_stages(spec).front();
  const auto& staged = kind_of(outermost).staged_batches;
  return staged ? staged(outermost) : 0;
}

std::vector<StageReport> estimate_pipeline(const Spec& spec, Bytes batch) {
  std::vector<StageReport> reports;
  for (const Spec& stage : pipeline_stages(spec)) {
    const auto& full = kind_of(stage).full_bytes;
    reports.push_back(
        {.name = stage.to_string(), .host_bytes_peak = full ? full(stage, batch) : std::nullopt});
  }
  return reports;
}

}  // namespace headroom
