#include "harness/results/json/memory_json.h"

namespace headroom {
namespace {

// A rung is never 0 once weights live on the device: 0 says that the run did not get there.
Json bytes_or_null(Bytes bytes) { return bytes == 0 ? Json() : Json(bytes); }
Bytes bytes_from(const Json& json) { return json.is_null() ? 0 : json.get<Bytes>(); }

Json to_json(const Moments& moments) {
  return {{"initial", bytes_or_null(moments.initial)},
          {"after_step_1", bytes_or_null(moments.after_step_1)},
          {"warmup_peak", bytes_or_null(moments.warmup_peak)},
          {"steady_peak", bytes_or_null(moments.steady_peak)},
          {"overall_peak", bytes_or_null(moments.overall_peak)}};
}

Moments moments_from(const Json& json) {
  return {.initial = bytes_from(json.at("initial")),
          .after_step_1 = bytes_from(json.at("after_step_1")),
          .warmup_peak = bytes_from(json.at("warmup_peak")),
          .steady_peak = bytes_from(json.at("steady_peak")),
          .overall_peak = bytes_from(json.at("overall_peak"))};
}

Json moments_or_null(const Moments& moments) {
  const bool empty = (moments.initial | moments.after_step_1 | moments.warmup_peak |
                      moments.steady_peak | moments.overall_peak) == 0;
  return empty ? Json() : to_json(moments);
}

// Null, or missing in older files: all 0.
Moments moments_if_there(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? Moments{} : moments_from(*found);
}

}  // namespace

Json memory_to_json(const Sample& sample) {
  if (!sample.ledger_available) return nullptr;
  const Ledger& ledger = sample.ledger;
  Json phases = Json::object();
  for (int i = 0; i < kPhaseCount; ++i) {
    const RungPeaks& peaks = ledger.phase_peaks[static_cast<std::size_t>(i)];
    phases[std::string(to_string(static_cast<Phase>(i)))] = {{"requested_bytes", peaks.requested},
                                                             {"allocated_bytes", peaks.allocated},
                                                             {"reserved_bytes", peaks.reserved}};
  }
  Json roles = Json::object();
  for (int i = 0; i < kRoleCount; ++i)
    roles[std::string(to_string(static_cast<Role>(i)))] =
        ledger.requested_at_peak[static_cast<std::size_t>(i)];
  const ProcessMemory& process = sample.process;
  return {{"requested_bytes", to_json(ledger.requested)},
          {"allocated_bytes", to_json(ledger.allocated)},
          {"reserved_bytes", to_json(ledger.reserved)},
          {"process_bytes", moments_or_null(process.resident)},
          {"process_baseline_bytes", bytes_or_null(process.baseline)},
          {"device_bytes", moments_or_null(sample.driver.used)},
          {"device_baseline_bytes", bytes_or_null(sample.driver.baseline)},
          {"device_process_bytes", moments_or_null(sample.driver.process)},
          {"phase_peaks", phases},
          {"requested_bytes_by_role_at_peak", roles},
          {"internal_fragmentation", number_or_null(ledger.internal_fragmentation)},
          {"external_fragmentation", number_or_null(ledger.external_fragmentation)},
          {"utilisation", number_or_null(ledger.utilisation)},
          {"lower_bound_bytes", sample.lower_bound_bytes},
          {"device_allocations_per_step", ledger.device_allocations},
          {"device_frees_per_step", ledger.device_frees},
          {"allocated_bytes_after_step", ledger.allocated_after_step}};
}

void read_memory(const Json& json, Sample& sample) {
  sample.ledger_available = !json.is_null();
  if (!sample.ledger_available) return;
  Ledger& ledger = sample.ledger;
  ledger.requested = moments_from(json.at("requested_bytes"));
  ledger.allocated = moments_from(json.at("allocated_bytes"));
  ledger.reserved = moments_from(json.at("reserved_bytes"));
  sample.process.resident = moments_if_there(json, "process_bytes");
  sample.process.baseline = bytes_from(json.at("process_baseline_bytes"));
  sample.driver.used = moments_if_there(json, "device_bytes");
  if (const auto found = json.find("device_baseline_bytes"); found != json.end())
    sample.driver.baseline = bytes_from(*found);
  sample.driver.process = moments_if_there(json, "device_process_bytes");
  const Json& phases = json.at("phase_peaks");
  for (int i = 0; i < kPhaseCount; ++i) {
    const auto found = phases.find(std::string(to_string(static_cast<Phase>(i))));
    if (found == phases.end()) continue;
    ledger.phase_peaks[static_cast<std::size_t>(i)] = {
        .requested = found->at("requested_bytes").get<Bytes>(),
        .allocated = found->at("allocated_bytes").get<Bytes>(),
        .reserved = found->at("reserved_bytes").get<Bytes>()};
  }
  const Json& roles = json.at("requested_bytes_by_role_at_peak");
  for (int i = 0; i < kRoleCount; ++i)
    ledger.requested_at_peak[static_cast<std::size_t>(i)] =
        roles.value(std::string(to_string(static_cast<Role>(i))), Bytes{0});
  json.at("internal_fragmentation").get_to(ledger.internal_fragmentation);
  json.at("external_fragmentation").get_to(ledger.external_fragmentation);
  json.at("utilisation").get_to(ledger.utilisation);
  json.at("lower_bound_bytes").get_to(sample.lower_bound_bytes);
  json.at("device_allocations_per_step").get_to(ledger.device_allocations);
  json.at("device_frees_per_step").get_to(ledger.device_frees);
  if (const auto found = json.find("allocated_bytes_after_step"); found != json.end())
    found->get_to(ledger.allocated_after_step);
}

}  // namespace headroom
