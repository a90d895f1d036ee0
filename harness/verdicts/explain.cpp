#include "harness/verdicts/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/results/json/cell_json.h"

namespace headroom {
namespace {

std::string text_of(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

constexpr std::size_t kSweepsToName = 3;

// Returns "S02/v100-16gb" for "S02/v100-16gb/batch=4".
std::string sweep_of(const std::string& experiment) {
  const std::size_t axis = experiment.rfind('/', experiment.find('='));
  return experiment.find('=') == std::string::npos ? experiment : experiment.substr(0, axis);
}

// Returns, for example, "S02/v100-16gb (17 points), S02/a100 (9 points) and 4 more; 20 pairs in
// all".
std::string data_of(const Json& verdict) {
  std::vector<std::pair<std::string, std::set<std::string>>> sweeps;
  std::size_t pairs = 0;
  for (const Json& evidence : verdict.at("evidence")) {
    const std::string name = text_of(evidence, "experiment");
    auto sweep = std::find_if(sweeps.begin(), sweeps.end(),
                              [&](const auto& known) { return known.first == sweep_of(name); });
    if (sweep == sweeps.end()) sweep = sweeps.insert(sweeps.end(), {sweep_of(name), {}});
    sweep->second.insert(name);
    if (!evidence.at("comparison").at("exact").get<bool>())
      pairs += evidence.at("comparison").at("n_pairs").get<std::size_t>();
  }
  const std::size_t more = sweeps.size() > kSweepsToName + 1 ? sweeps.size() - kSweepsToName : 0;
  std::vector<std::string> names;
  for (const auto& [sweep, experiments] : std::span(sweeps).first(sweeps.size() - more))
    names.push_back(experiments.size() == 1
                        ? *experiments.begin()
                        : fmt::format("{} ({} points)", sweep, experiments.size()));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  if (pairs > 0) text += fmt::format("; {} pairs in all", pairs);
  return text;
}

std::string explain_part(const Json& part) {
  std::string text;
  for (const Json& verdict : part.at("verdicts"))
    text +=
        fmt::format("  {}, {}{}: {}\n    why: {}\n    data: {}, {}\n    would change it: {}\n",
                    text_of(part, "name"), text_of(verdict, "subject"),
                    verdict.at("relation") == "own" ? "" : " (an analogue)",
                    text_of(verdict, "verdict"), text_of(verdict, "why"), text_of(verdict, "basis"),
                    data_of(verdict), text_of(verdict, "would_change"));
  if (part.at("verdicts").empty())
    text = fmt::format("  {}: no experiment of this run is about it\n", text_of(part, "name"));
  return text;
}

Json claims_with(const Json& verdicts, const std::vector<std::string>& ids) {
  std::vector<std::string> known;
  for (const Json& claim : verdicts.at("claims")) known.push_back(text_of(claim, "id"));
  if (known.empty() && !ids.empty())
    throw InputError(
        fmt::format("{}: this run judges no claims; one that does: headroom run "
                    "claims --filter 'claim={}'",
                    ids.front(), ids.front()));
  for (const std::string& id : ids)
    if (std::find(known.begin(), known.end(), id) == known.end())
      throw_unknown_name("claim of this run", id, known);
  Json found = Json::array();
  for (const Json& claim : verdicts.at("claims"))
    if (ids.empty() || std::find(ids.begin(), ids.end(), text_of(claim, "id")) != ids.end())
      found.push_back(claim);
  return found;
}

}  // namespace

std::string explain(const std::string& verdicts_json, const std::vector<std::string>& ids) {
  const Json verdicts = Json::parse(verdicts_json);
  std::string text;
  for (const Json& claim : claims_with(verdicts, ids)) {
    text += fmt::format("{} ({}): {}\n  claimed: {}\n  why: {}\n", text_of(claim, "id"),
                        text_of(claim, "title"), text_of(claim, "verdict"),
                        text_of(claim, "statement"), text_of(claim, "why"));
    for (const Json& part : claim.at("parts")) text += explain_part(part);
  }
  return text;
}

std::string verdicts_of(const std::string& verdicts_json, const std::vector<std::string>& ids) {
  Json verdicts = Json::parse(verdicts_json);
  verdicts["claims"] = claims_with(verdicts, ids);
  return verdicts.dump(1);
}

std::string headline_of(const std::string& verdicts_json) {
  return Json::parse(verdicts_json).at("headline").get<std::string>();
}

std::map<std::string, std::vector<std::string>> claims_by_word(const std::string& verdicts_json) {
  std::map<std::string, std::vector<std::string>> ids;
  const Json verdicts = Json::parse(verdicts_json);
  for (const Json& claim : verdicts.at("claims"))
    ids[claim.at("verdict").get<std::string>()].push_back(claim.at("id").get<std::string>());
  return ids;
}

std::string distrust_of(const std::string& verdicts_json) {
  const Json verdicts = Json::parse(verdicts_json);
  for (const auto& [part, word] :
       {std::pair("calibration", "out of calibration"), std::pair("sensitivity", "insensitive")})
    if (verdicts.at(part).at("status") == word) return verdicts.at(part).at("why");
  return "";
}

}  // namespace headroom
