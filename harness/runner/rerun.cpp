#include "harness/runner/rerun.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/results/json/cell_json.h"

namespace headroom {
namespace {

// Whether a comparison is undecided because of too few pairs. Other causes, such as a failed
// calibration, are not fixed by more pairs.
bool may_be_decided(const Json& comparison) {
  static const std::set<std::string> reasons = {"paired", "no_pairs", "not_deterministic",
                                                "one_of_many"};
  return comparison.at("verdict") == "INCONCLUSIVE" && !comparison.at("exact").get<bool>() &&
         reasons.contains(comparison.at("reason_code").get<std::string>());
}

std::set<std::string> undecided(const Json& verdicts) {
  std::set<std::string> experiments;
  for (const Json& entry : verdicts.at("matrix"))
    for (const Json& comparison : entry.at("comparisons"))
      if (may_be_decided(comparison)) experiments.insert(entry.at("experiment"));
  for (const Json& claim : verdicts.at("claims"))
    for (const Json& part : claim.at("parts"))
      for (const Json& verdict : part.at("verdicts"))
        for (const Json& evidence : verdict.at("evidence"))
          if (may_be_decided(evidence.at("comparison")))
            experiments.insert(evidence.at("experiment"));
  return experiments;
}

std::map<std::string, std::set<int>> failed_blocks(const Json& verdicts) {
  std::map<std::string, std::set<int>> blocks;
  for (const Json& failure : verdicts.at("failures"))
    blocks[failure.at("experiment")].insert(failure.at("block").get<int>());
  return blocks;
}

int first_free_block(const RunInfo& info, const Experiment& experiment,
                     const std::vector<Sample>& recorded) {
  int next = experiment.blocks;
  for (const Sample& sample : recorded)
    if (sample.experiment == experiment.id) next = std::max(next, sample.block + 1);
  for (const Addition& addition : info.additions)
    if (addition.experiment == experiment.id)
      next = std::max(next, addition.first_block + addition.blocks);
  return next;
}

}  // namespace

AddedFor parse_added_for(const std::string& text) {
  if (text == to_string(AddedFor::inconclusive)) return AddedFor::inconclusive;
  if (text == to_string(AddedFor::failed)) return AddedFor::failed;
  throw_unknown_name("--rerun", text,
                     {to_string(AddedFor::inconclusive), to_string(AddedFor::failed)});
}

std::vector<Addition> additions_for(AddedFor reason, const RunInfo& info,
                                    const std::vector<Sample>& recorded,
                                    const std::string& verdicts_json) {
  const Json verdicts = Json::parse(verdicts_json);
  const auto open = undecided(verdicts);
  const auto failed = failed_blocks(verdicts);
  std::vector<Addition> additions;
  for (const Experiment& experiment : info.experiments) {
    int blocks = 0;
    if (reason == AddedFor::inconclusive && open.contains(experiment.id))
      blocks = experiment.blocks;
    if (reason == AddedFor::failed && failed.contains(experiment.id))
      blocks = static_cast<int>(failed.at(experiment.id).size());
    if (blocks == 0) continue;
    additions.push_back({.experiment = experiment.id,
                         .reason = reason,
                         .added = timestamp_now(),
                         .first_block = first_free_block(info, experiment, recorded),
                         .blocks = blocks});
  }
  return additions;
}

}  // namespace headroom
