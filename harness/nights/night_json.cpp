#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/nights/night.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

std::string text_from(const Json& json) { return json.is_null() ? "" : json.get<std::string>(); }

Json to_object(const NightCell& cell) {
  return {{"experiment", cell.experiment},     {"arm", cell.arm},     {"cell_id", cell.cell_id},
          {"device_class", cell.device_class}, {"rules", cell.rules}, {"status", cell.status},
          {"why", text_or_null(cell.why)},     {"exact", cell.exact}, {"noisy", cell.noisy}};
}

NightCell cell_from(const Json& json) {
  return {.experiment = json.at("experiment"),
          .arm = json.at("arm"),
          .cell_id = json.at("cell_id"),
          .device_class = json.at("device_class"),
          .rules = json.at("rules"),
          .status = json.at("status"),
          .why = text_from(json.at("why")),
          .exact = json.at("exact").get<std::map<std::string, double>>(),
          .noisy = json.at("noisy").get<std::map<std::string, double>>()};
}

}  // namespace

std::string to_json(const Night& night) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "night"},
               {"night_id", night.night_id},
               {"run_id", night.run_id},
               {"suite", night.suite},
               {"started", night.started},
               {"version", night.version},
               {"commit", value_or_null(night.commit)},
               {"dirty", value_or_null(night.dirty)},
               {"machine", night.machine},
               {"environment_id", night.environment_id},
               {"environment", Json::array()},
               {"distrust", text_or_null(night.distrust)},
               {"cells", Json::array()},
               {"verdicts", Json::array()}};
  for (const auto& [what, value] : night.environment)
    json["environment"].push_back({{"what", what}, {"value", value}});
  for (const NightCell& cell : night.cells) json["cells"].push_back(to_object(cell));
  for (const NightVerdict& verdict : night.verdicts)
    json["verdicts"].push_back({{"claim", verdict.claim},
                                {"device_class", verdict.device_class},
                                {"verdict", verdict.verdict}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Night night_from_json(const std::string& text, const std::string& where) {
  check_record(text, RecordKind::night, where);
  const Json json = Json::parse(text);
  Night night{.night_id = json.at("night_id"),
              .run_id = json.at("run_id"),
              .suite = json.at("suite"),
              .started = json.at("started"),
              .version = json.at("version"),
              .commit = optional_from<std::string>(json.at("commit")),
              .dirty = optional_from<bool>(json.at("dirty")),
              .machine = json.at("machine"),
              .environment_id = json.at("environment_id"),
              .environment = {},
              .distrust = text_from(json.at("distrust")),
              .cells = {},
              .verdicts = {}};
  for (const Json& fact : json.at("environment"))
    night.environment.emplace_back(fact.at("what"), fact.at("value"));
  for (const Json& cell : json.at("cells")) night.cells.push_back(cell_from(cell));
  for (const Json& verdict : json.at("verdicts"))
    night.verdicts.push_back(
        {verdict.at("claim"), verdict.at("device_class"), verdict.at("verdict")});
  return night;
}

}  // namespace headroom
