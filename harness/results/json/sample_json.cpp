// Samples, and the requests they answer, as JSON.
#include <fmt/format.h>

#include <numeric>

#include "harness/device/traits.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/json/memory_json.h"
#include "harness/results/json/pipeline_json.h"
#include "harness/results/json/record.h"
#include "harness/results/sample.h"
#include "harness/results/sample_request.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

Json probe_to_json(const Sample& sample) {
  if (sample.probe_before_gflops == 0 && sample.probe_after_gflops == 0) return nullptr;
  return {{"before_gflops", number_or_null(sample.probe_before_gflops)},
          {"after_gflops", number_or_null(sample.probe_after_gflops)}};
}

void read_probe(const Json& json, Sample& sample) {
  if (json.is_null()) return;
  json.at("before_gflops").get_to(sample.probe_before_gflops);
  json.at("after_gflops").get_to(sample.probe_after_gflops);
}

// Throughput over steady steps only.
Json throughput(const Sample& sample) {
  const auto warmup = static_cast<std::size_t>(sample.cell.warmup_steps);
  if (!traits_of(sample.cell.device).timed || sample.step_time_ns.size() <= warmup ||
      sample.samples_per_step == 0)
    return nullptr;
  const auto first = sample.step_time_ns.begin() + static_cast<std::ptrdiff_t>(warmup);
  const double total_ns =
      static_cast<double>(std::accumulate(first, sample.step_time_ns.end(), std::uint64_t{0}));
  const auto steps = static_cast<double>(sample.step_time_ns.size() - warmup);
  return number_or_null(static_cast<double>(sample.samples_per_step) * steps * 1e9 / total_ns);
}

// Writes one line. Text from elsewhere (the last output of a crash) may be invalid UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

template <>
inline constexpr auto kNames<SampleStatus> =
    std::array{SampleStatus::ok,      SampleStatus::oom,         SampleStatus::crash,
               SampleStatus::timeout, SampleStatus::unsupported, SampleStatus::invalid};

template <typename Visitor, RecordOf<Witness> Record>
void fields(Visitor& visit, Record& witness) {
  visit.required("heap_live_bytes", witness.heap_live_bytes);
  visit.required("heap_peak_bytes", witness.heap_peak_bytes);
  visit.required("heap_allocations_per_step", witness.heap_allocations_per_step);
  if constexpr (Visitor::kReads) witness.available = true;
}
inline bool is_unset(const Witness& witness) { return !witness.available; }

template <typename Visitor, RecordOf<OutOfMemoryReport> Record>
void fields(Visitor& visit, Record& report) {
  visit.required("requested_bytes", report.requested_bytes);
  visit.required("capacity_bytes", report.capacity_bytes);
  visit.required("reserved_bytes", report.reserved_bytes);
  visit.required("allocated_bytes", report.allocated_bytes);
  visit.required("free_bytes", report.free_bytes);
  visit.required("largest_free_bytes", report.largest_free_bytes);
  visit.required("allocator", report.allocator);
}

template <typename Visitor, RecordOf<Turns> Record>
void fields(Visitor& visit, Record& turns) {
  visit.required("steps", turns.steps);
  visit.required("numbers", turns.numbers);
}

template <typename Visitor, RecordOf<Sample> Record>
void fields(Visitor& visit, Record& sample) {
  visit.kind("sample");
  visit.required("experiment", sample.experiment);
  visit.required("arm", sample.arm);
  visit.required("block", sample.block);
  visit.required("order_index", sample.order_index);
  visit.later_or_null("turns", sample.turns);
  visit.later_or_null("why_no_turns", sample.why_no_turns);
  if constexpr (Visitor::kReads) {
    sample.cell = cell_from_json(visit.json().at("cell"));
  } else {
    visit.derived("pair_id", fmt::format("{}#{}", sample.experiment, sample.block));
    visit.derived("cell", cell_to_json(sample.cell, sample.samples_per_step));
  }
  visit.required("status", sample.status);
  visit.or_null("reason", sample.reason);
  visit.required("seed", sample.seed);
  visit.required("started", sample.started);
  visit.required("lowering_rules", sample.rules);
  visit.derived("warmup_steps", sample.cell.warmup_steps);
  visit.derived("measured_steps", sample.cell.measured_steps);
  visit.required("step_time_ns", sample.step_time_ns);
  visit.required("stall_time_ns", sample.stall_time_ns);
  visit.required("minor_faults", sample.minor_faults);
  visit.required("setup_ns", sample.setup_ns);
  visit.required("device_setup_ns", sample.device_setup_ns);
  if constexpr (!Visitor::kReads) visit.derived("throughput_samples_per_s", throughput(sample));
  visit.required("samples_per_step", sample.samples_per_step);
  visit.required("flops_per_step", sample.flops_per_step);
  visit.later("recomputed_ops_per_step", sample.recomputed_ops_per_step);
  visit.required("parameter_count", sample.parameter_count);
  visit.required("loss", sample.loss);
  visit.required("held_out_accuracy", sample.held_out_accuracy);
  visit.later("zero_weight_share", sample.zero_weight_share);
  visit.later("figures", sample.figures);
  visit.later_or_null("note", sample.note);
  visit.later_or_null("engine", sample.engine);
  if constexpr (Visitor::kReads)
    read_memory(visit.json().at("memory"), sample);
  else
    visit.derived("memory", memory_to_json(sample));
  visit.or_null("witness", sample.witness);
  if constexpr (Visitor::kReads)
    sample.pipeline = pipeline_from_json(visit.json().value("pipeline", Json()));
  else
    visit.derived("pipeline", pipeline_to_json(sample.pipeline));
  visit.required("oom", sample.oom);
  if constexpr (Visitor::kReads)
    read_probe(visit.json().at("probe"), sample);
  else
    visit.derived("probe", probe_to_json(sample));
  visit.later("cpu_wait_ns", sample.cpu_wait_ns);
  visit.or_null("recording_ns_per_event", sample.recording.ns_per_event);
  visit.later("recorded_events", sample.recording.events);
  visit.later("recorded_steady_events", sample.recording.steady_events);
  visit.later("recording_bytes", sample.recording.bytes);
  visit.or_null("trace_file", sample.trace_file);
}

std::string to_json(const Sample& sample) { return dump(value_to_json(sample)); }

Sample sample_from_json(const std::string& text) try {
  return value_of<Sample>(Json::parse(text));
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a sample record: {}", error.what()));
}

std::string to_json(const SampleRequest& request) {
  return dump({{"cell", cell_to_json(request.cell, 0)},
               {"seed", request.seed},
               {"trace_path", request.trace_path},
               {"takes_turns", request.takes_turns}});
}

SampleRequest sample_request_from_json(const std::string& text) try {
  const Json json = Json::parse(text);
  return {.cell = cell_from_json(json.at("cell")),
          .seed = json.at("seed").get<std::uint64_t>(),
          .trace_path = json.at("trace_path").get<std::string>(),
          .takes_turns = json.value("takes_turns", false)};
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a sample request: {}", error.what()));
}

}  // namespace headroom
