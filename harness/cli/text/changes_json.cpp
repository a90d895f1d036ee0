#include "harness/cli/text/changes_json.h"

#include <nlohmann/json.hpp>

#include "harness/results/schema_check.h"

namespace headroom {

const char* const kWhyNoTimes =
    "Times are not compared: between two runs the machine drifts, and judging identical "
    "configurations so "
    "raised a false alarm in 45.9 % of simulated cases; put both into one run instead, where they "
    "alternate.";

namespace {

nlohmann::ordered_json to_json(const CellChange& cell) {
  nlohmann::ordered_json json = {{"experiment", cell.experiment},
                                 {"arm", cell.arm},
                                 {"outcome", to_string(cell.outcome)},
                                 {"sentence", cell.sentence + "."}};
  json["changes"] = nlohmann::ordered_json::array();
  for (const MetricChange& change : cell.changes)
    json["changes"].push_back({{"metric", change.metric->name},
                               {"unit", change.metric->unit},
                               {"before", change.before},
                               {"after", change.after},
                               {"outcome", to_string(change.outcome)}});
  return json;
}

nlohmann::ordered_json to_json(const RunChanges& changes) {
  nlohmann::ordered_json json = {{"schema_version", kSchemaVersion}, {"kind", "changes"}};
  json["regression"] = changes.has_regression();
  json["not_compared"] = kWhyNoTimes;
  json["missing"] = changes.missing;
  json["new"] = changes.added;
  json["environment"] = nlohmann::ordered_json::array();
  for (const auto& [what, first, second] : changes.environment)
    json["environment"].push_back({{"what", what}, {"before", first}, {"after", second}});
  json["cells"] = nlohmann::ordered_json::array();
  for (const CellChange& cell : changes.cells) json["cells"].push_back(to_json(cell));
  return json;
}

}  // namespace

std::string changes_json(const RunChanges& changes) {
  return to_json(changes).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headroom
