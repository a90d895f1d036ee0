#include "harness/results/json/memory_json.h"

#include "harness/results/json/record.h"

namespace headroom {
namespace {

// Writes one value per enumerator as an object keyed by name. A missing name reads as 0.
template <typename Enum, typename Values>
Json by_name(const Values& values) {
  Json json = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i)
    json[std::string(to_string(static_cast<Enum>(i)))] = value_to_json(values[i]);
  return json;
}
template <typename Enum, typename Values>
void read_by_name(const Json& json, Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto found = json.find(std::string(to_string(static_cast<Enum>(i))));
        found != json.end())
      value_from_json(*found, values[i]);
}

template <typename Visitor, RecordOf<Sample> Record>
void memory_fields(Visitor& visit, Record& sample) {
  auto& ledger = sample.ledger;
  visit.required("requested_bytes", ledger.requested);
  visit.required("allocated_bytes", ledger.allocated);
  visit.required("reserved_bytes", ledger.reserved);
  visit.later_or_null("process_bytes", sample.process.resident);
  visit.or_null("process_baseline_bytes", sample.process.baseline);
  visit.later_or_null("device_bytes", sample.driver.used);
  visit.later_or_null("device_baseline_bytes", sample.driver.baseline);
  visit.later_or_null("device_process_bytes", sample.driver.process);
  if constexpr (Visitor::kReads) {
    read_by_name<Phase>(visit.json().at("phase_peaks"), ledger.phase_peaks);
    read_by_name<Role>(visit.json().at("requested_bytes_by_role_at_peak"),
                       ledger.requested_at_peak);
  } else {
    visit.derived("phase_peaks", by_name<Phase>(ledger.phase_peaks));
    visit.derived("requested_bytes_by_role_at_peak", by_name<Role>(ledger.requested_at_peak));
  }
  visit.required("internal_fragmentation", ledger.internal_fragmentation);
  visit.required("external_fragmentation", ledger.external_fragmentation);
  visit.required("utilisation", ledger.utilisation);
  visit.required("lower_bound_bytes", sample.lower_bound_bytes);
  visit.required("device_allocations_per_step", ledger.device_allocations);
  visit.required("device_frees_per_step", ledger.device_frees);
  visit.later("allocated_bytes_after_step", ledger.allocated_after_step);
}

}  // namespace

// Bytes are never 0 once weights are on the device; 0 means that the run did not get that far.
template <typename Visitor, RecordOf<Moments> Record>
void fields(Visitor& visit, Record& moments) {
  visit.or_null("initial", moments.initial);
  visit.or_null("after_step_1", moments.after_step_1);
  visit.or_null("warmup_peak", moments.warmup_peak);
  visit.or_null("steady_peak", moments.steady_peak);
  visit.or_null("overall_peak", moments.overall_peak);
}

template <typename Visitor, RecordOf<PhasePeaks> Record>
void fields(Visitor& visit, Record& peaks) {
  visit.required("requested_bytes", peaks.requested);
  visit.required("allocated_bytes", peaks.allocated);
  visit.required("reserved_bytes", peaks.reserved);
}

Json memory_to_json(const Sample& sample) {
  if (!sample.ledger_available) return nullptr;
  FieldWriter writer;
  memory_fields(writer, sample);
  return writer.take();
}

void read_memory(const Json& json, Sample& sample) {
  sample.ledger_available = !json.is_null();
  if (!sample.ledger_available) return;
  FieldReader reader(json);
  memory_fields(reader, sample);
}

}  // namespace headroom
