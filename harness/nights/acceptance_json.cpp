#include "harness/nights/acceptance.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"

namespace headroom {

std::string to_json(const Acceptance& acceptance) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "acceptance"},
               {"accepted", acceptance.accepted},
               {"night_id", acceptance.night_id},
               {"suite", acceptance.suite},
               {"machine", acceptance.machine},
               {"scope", acceptance.scope},
               {"by", acceptance.by},
               {"reason", acceptance.reason},
               {"cell", nullptr},
               {"verdict", nullptr}};
  if (const auto& cell = acceptance.cell)
    json["cell"] = {{"experiment", cell->experiment},
                    {"arm", cell->arm},
                    {"cell_id", cell->cell_id},
                    {"rules", cell->rules},
                    {"status", cell->status},
                    {"exact", cell->exact},
                    {"levels_since", cell->levels_since}};
  if (const auto& verdict = acceptance.verdict)
    json["verdict"] = {{"claim", verdict->claim},
                       {"device_class", verdict->device_class},
                       {"verdict", verdict->verdict}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Acceptance acceptance_from_json(const std::string& text, const std::string& where) {
  check_record(text, RecordKind::acceptance, where);
  const Json json = Json::parse(text);
  Acceptance acceptance{.accepted = json.at("accepted"),
                        .night_id = json.at("night_id"),
                        .suite = json.at("suite"),
                        .machine = json.at("machine"),
                        .scope = json.at("scope"),
                        .by = json.at("by"),
                        .reason = json.at("reason"),
                        .cell = std::nullopt,
                        .verdict = std::nullopt};
  if (const Json& cell = json.at("cell"); !cell.is_null())
    acceptance.cell = {.experiment = cell.at("experiment"),
                       .arm = cell.at("arm"),
                       .cell_id = cell.at("cell_id"),
                       .rules = cell.at("rules"),
                       .status = cell.at("status"),
                       .exact = cell.at("exact").get<std::map<std::string, double>>(),
                       .levels_since = cell.at("levels_since")};
  if (const Json& verdict = json.at("verdict"); !verdict.is_null())
    acceptance.verdict = {verdict.at("claim"), verdict.at("device_class"), verdict.at("verdict")};
  if (acceptance.cell.has_value() == acceptance.verdict.has_value())
    throw InputError(where + ": holds a cell or a verdict, not both or neither");
  return acceptance;
}

}  // namespace headroom
