#include <nlohmann/json.hpp>

#include "harness/cli/text/oom_text.h"
#include "harness/cli/text/print_json.h"
#include "harness/cli/text/replay/replayed.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

Json row_to_json(const ReplayRow& row) {
  const ReplayOutcome& outcome = row.outcome;
  Json json = {{"allocator", row.spec.to_string()}};
  if (!row.refused.empty()) {
    json["status"] = "unsupported";
    json["reason"] = row.refused;
    return json;
  }
  json["status"] = outcome.failure ? "oom" : "ok";
  json["keeps_streams_apart"] = keeps_streams_apart(row.spec);
  json["not_engaged"] = value_or_null(outcome.not_engaged);
  json["requests_served"] = outcome.replayed;
  json["requested_bytes_peak"] = outcome.ledger.requested.overall_peak;
  json["allocated_bytes_peak"] = outcome.ledger.allocated.overall_peak;
  json["reserved_bytes_peak"] = outcome.ledger.reserved.overall_peak;
  json["utilisation"] = outcome.ledger.utilisation;
  json["internal_fragmentation"] = outcome.ledger.internal_fragmentation;
  json["external_fragmentation"] = outcome.ledger.external_fragmentation;
  add_capacity(json, row.viable);
  json["device_allocations"] = outcome.device_allocations;
  json["device_frees"] = outcome.device_frees;
  json["splits"] = outcome.splits;
  json["merges"] = outcome.merges;
  json["ns_per_operation"] = value_or_null(row.ns_per_operation);
  json["failure"] = outcome.failure ? to_json(*outcome.failure) : Json();
  return json;
}

Json fits(Foresight::Fit fit) {
  if (fit == Foresight::Fit::unknown) return nullptr;
  return fit == Foresight::Fit::yes;
}

}  // namespace

void print_replay_json(const Replayed& replayed) {
  const auto& [file, trace, list, problem, device, rows, foresight] = replayed;
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "replay"},
               {"file", file.string()},
               {"written_by", trace.header.allocator},
               {"requests", list.requests.size()},
               {"streams", list.streams},
               {"peak_live_bytes", list.peak_live_bytes},
               {"capacity_bytes", device.capacity},
               {"granule_bytes", device.granule},
               {"planned_ahead",
                {{"bytes", foresight.bytes},
                 {"fits", fits(foresight.fit)},
                 {"lower_bound_bytes", problem.least},
                 {"alignment_bytes", problem.alignment},
                 {"seconds", foresight.seconds}}},
               {"strategies", Json::array()}};
  for (const ReplayRow& row : rows) json["strategies"].push_back(row_to_json(row));
  print_json(json);
}

}  // namespace headroom
