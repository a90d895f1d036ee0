#include "harness/run/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/registry.h"
#include "harness/run/cell_json.h"

namespace headroom {
namespace {

std::string text_of(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

// "v100-16gb: batch 1, 2 and 4 (2 pairs)": every experiment a verdict rests on, once.
std::string data_of(const Json& verdict) {
  std::vector<std::string> names;
  std::size_t pairs = 0;
  for (const Json& evidence : verdict.at("evidence")) {
    const std::string name = text_of(evidence, "experiment");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (!evidence.at("comparison").at("exact").get<bool>())
      pairs += evidence.at("comparison").at("n_pairs").get<std::size_t>();
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (pairs > 0) text += fmt::format(" ({} pairs in all)", pairs);
  return text;
}

std::string explain_part(const Json& part) {
  std::string text;
  for (const Json& verdict : part.at("verdicts"))
    text += fmt::format("  {}, {}{}: {}\n    why: {}\n    data: {}, {}\n    would change it: {}\n",
                        text_of(part, "name"), text_of(verdict, "subject"),
                        verdict.at("relation") == "own" ? "" : " (an analogue)",
                        text_of(verdict, "verdict"), text_of(verdict, "why"),
                        verdict.at("simulated").get<bool>() ? "simulated" : "measured",
                        data_of(verdict), text_of(verdict, "would_change"));
  if (part.at("verdicts").empty())
    text = fmt::format("  {}: no experiment of this run is about it\n", text_of(part, "name"));
  return text;
}

}  // namespace

std::string explain(const std::string& verdicts_json, const std::vector<std::string>& ids) {
  const Json verdicts = Json::parse(verdicts_json);
  std::vector<std::string> known;
  for (const Json& claim : verdicts.at("claims")) known.push_back(text_of(claim, "id"));
  for (const std::string& id : ids)
    if (std::find(known.begin(), known.end(), id) == known.end())
      throw_unknown_name("claim of this run", id, known);
  std::string text;
  for (const Json& claim : verdicts.at("claims")) {
    const bool wanted =
        ids.empty() || std::find(ids.begin(), ids.end(), text_of(claim, "id")) != ids.end();
    if (!wanted) continue;
    text += fmt::format("{} ({}): {}\n  claimed: {}\n  why: {}\n", text_of(claim, "id"),
                        text_of(claim, "title"), text_of(claim, "verdict"),
                        text_of(claim, "statement"), text_of(claim, "why"));
    for (const Json& part : claim.at("parts")) text += explain_part(part);
  }
  return text;
}

}  // namespace headroom
