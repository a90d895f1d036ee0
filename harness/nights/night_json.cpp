// Nights and acceptances as JSON.
#include <utility>

#include "harness/base/error.h"
#include "harness/nights/acceptance.h"
#include "harness/results/json/record.h"
#include "harness/results/schema_check.h"

namespace headroom {

using Fact = std::pair<std::string, std::string>;  // about the environment

template <typename Visitor, RecordOf<Fact> Record>
void fields(Visitor& visit, Record& fact) {
  visit.required("what", fact.first);
  visit.required("value", fact.second);
}

template <typename Visitor, RecordOf<NightCell> Record>
void fields(Visitor& visit, Record& cell) {
  visit.required("experiment", cell.experiment);
  visit.required("arm", cell.arm);
  visit.required("cell_id", cell.cell_id);
  visit.required("device_class", cell.device_class);
  visit.required("rules", cell.rules);
  visit.required("status", cell.status);
  visit.or_null("why", cell.why);
  visit.required("exact", cell.exact);
  visit.required("noisy", cell.noisy);
}

template <typename Visitor, RecordOf<NightVerdict> Record>
void fields(Visitor& visit, Record& verdict) {
  visit.required("claim", verdict.claim);
  visit.required("device_class", verdict.device_class);
  visit.required("verdict", verdict.verdict);
}

template <typename Visitor, RecordOf<Night> Record>
void fields(Visitor& visit, Record& night) {
  visit.kind("night");
  visit.required("night_id", night.night_id);
  visit.required("run_id", night.run_id);
  visit.required("suite", night.suite);
  visit.required("started", night.started);
  visit.required("version", night.version);
  visit.required("commit", night.commit);
  visit.required("dirty", night.dirty);
  visit.required("machine", night.machine);
  visit.required("environment_id", night.environment_id);
  visit.required("environment", night.environment);
  visit.or_null("distrust", night.distrust);
  visit.required("cells", night.cells);
  visit.required("verdicts", night.verdicts);
}

template <typename Visitor, RecordOf<AcceptedCell> Record>
void fields(Visitor& visit, Record& cell) {
  visit.required("experiment", cell.experiment);
  visit.required("arm", cell.arm);
  visit.required("cell_id", cell.cell_id);
  visit.required("rules", cell.rules);
  visit.required("status", cell.status);
  visit.required("exact", cell.exact);
  visit.required("levels_since", cell.levels_since);
}

template <typename Visitor, RecordOf<Acceptance> Record>
void fields(Visitor& visit, Record& acceptance) {
  visit.kind("acceptance");
  visit.required("accepted", acceptance.accepted);
  visit.required("night_id", acceptance.night_id);
  visit.required("suite", acceptance.suite);
  visit.required("machine", acceptance.machine);
  visit.required("scope", acceptance.scope);
  visit.required("by", acceptance.by);
  visit.required("reason", acceptance.reason);
  visit.required("cell", acceptance.cell);
  visit.required("verdict", acceptance.verdict);
}

namespace {

template <typename Record>
std::string line_of(const Record& record) {
  return value_to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Night& night) { return line_of(night) + "\n"; }

Night night_from_json(const std::string& text, const std::string& where) {
  check_record(text, RecordKind::night, where);
  return value_of<Night>(Json::parse(text));
}

std::string to_json(const Acceptance& acceptance) { return line_of(acceptance); }

Acceptance acceptance_from_json(const std::string& text, const std::string& where) {
  check_record(text, RecordKind::acceptance, where);
  auto acceptance = value_of<Acceptance>(Json::parse(text));
  if (acceptance.cell.has_value() == acceptance.verdict.has_value())
    throw InputError(where + ": must have a cell or a verdict, and not both");
  return acceptance;
}

}  // namespace headroom
