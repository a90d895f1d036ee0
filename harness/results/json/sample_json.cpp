// Samples, and the requests they answer, as JSON.
#include <fmt/format.h>

#include <numeric>

#include "harness/device/traits.h"
#include "harness/plan/experiment.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/json/memory_json.h"
#include "harness/results/json/pipeline_json.h"
#include "harness/results/sample.h"
#include "harness/results/sample_request.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

Json witness_to_json(const Witness& witness) {
  if (!witness.available) return nullptr;
  return {{"heap_live_bytes", witness.heap_live_bytes},
          {"heap_peak_bytes", witness.heap_peak_bytes},
          {"heap_allocations_per_step", witness.heap_allocations_per_step}};
}

Json oom_to_json(const std::optional<OutOfMemoryReport>& oom) {
  if (!oom) return nullptr;
  return {{"requested_bytes", oom->requested_bytes},
          {"capacity_bytes", oom->capacity_bytes},
          {"reserved_bytes", oom->reserved_bytes},
          {"allocated_bytes", oom->allocated_bytes},
          {"free_bytes", oom->free_bytes},
          {"largest_free_bytes", oom->largest_free_bytes},
          {"allocator", oom->allocator}};
}

std::optional<OutOfMemoryReport> oom_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return OutOfMemoryReport{.requested_bytes = json.at("requested_bytes").get<Bytes>(),
                           .capacity_bytes = json.at("capacity_bytes").get<Bytes>(),
                           .reserved_bytes = json.at("reserved_bytes").get<Bytes>(),
                           .allocated_bytes = json.at("allocated_bytes").get<Bytes>(),
                           .free_bytes = json.at("free_bytes").get<Bytes>(),
                           .largest_free_bytes = json.at("largest_free_bytes").get<Bytes>(),
                           .allocator = json.at("allocator").get<std::string>()};
}

Json probe_to_json(const Sample& sample) {
  if (sample.probe_before_gflops == 0 && sample.probe_after_gflops == 0) return nullptr;
  return {{"before_gflops", number_or_null(sample.probe_before_gflops)},
          {"after_gflops", number_or_null(sample.probe_after_gflops)}};
}

// Steady steps only.
Json throughput(const Sample& sample) {
  const auto warmup = static_cast<std::size_t>(sample.cell.warmup_steps);
  if (!traits_of(sample.cell.device).timed || sample.step_time_ns.size() <= warmup) return nullptr;
  const auto first = sample.step_time_ns.begin() + static_cast<std::ptrdiff_t>(warmup);
  const double total_ns =
      static_cast<double>(std::accumulate(first, sample.step_time_ns.end(), std::uint64_t{0}));
  const auto steps = static_cast<double>(sample.step_time_ns.size() - warmup);
  return number_or_null(static_cast<double>(sample.samples_per_step) * steps * 1e9 / total_ns);
}

Json loss_to_json(const std::vector<double>& loss) {
  Json list = Json::array();
  for (const double value : loss) list.push_back(number_or_null(value));
  return list;
}

Json recording_ns(const RecordingCost& cost) {
  return cost.ns_per_event == 0 ? Json() : number_or_null(cost.ns_per_event);
}

SampleStatus sample_status_from(const std::string& text) {
  for (const auto status : {SampleStatus::ok, SampleStatus::oom, SampleStatus::crash,
                            SampleStatus::timeout, SampleStatus::unsupported})
    if (to_string(status) == text) return status;
  return SampleStatus::invalid;
}

// One line; text from elsewhere (a crash's last words) may be no UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Sample& sample) {
  return dump({{"schema_version", kSchemaVersion},
               {"kind", "sample"},
               {"experiment", sample.experiment},
               {"arm", sample.arm},
               {"block", sample.block},
               {"order_index", sample.order_index},
               {"pair_id", fmt::format("{}#{}", sample.experiment, sample.block)},
               {"cell", cell_to_json(sample.cell, sample.samples_per_step)},
               {"status", to_string(sample.status)},
               {"reason", sample.reason.empty() ? Json() : Json(sample.reason)},
               {"seed", sample.seed},
               {"started", sample.started},
               {"lowering_rules", sample.rules},
               {"warmup_steps", sample.cell.warmup_steps},
               {"measured_steps", sample.cell.measured_steps},
               {"step_time_ns", sample.step_time_ns},
               {"stall_time_ns", sample.stall_time_ns},
               {"minor_faults", sample.minor_faults},
               {"setup_ns", sample.setup_ns},
               {"device_setup_ns", sample.device_setup_ns},
               {"throughput_samples_per_s", throughput(sample)},
               {"samples_per_step", sample.samples_per_step},
               {"flops_per_step", number_or_null(sample.flops_per_step)},
               {"recomputed_ops_per_step", sample.recomputed_ops_per_step},
               {"parameter_count", sample.parameter_count},
               {"loss", loss_to_json(sample.loss)},
               {"held_out_accuracy", value_or_null(sample.held_out_accuracy)},
               {"zero_weight_share", value_or_null(sample.zero_weight_share)},
               {"figures", sample.figures},
               {"note", sample.note.empty() ? Json() : Json(sample.note)},
               {"memory", memory_to_json(sample)},
               {"witness", witness_to_json(sample.witness)},
               {"pipeline", pipeline_to_json(sample.pipeline)},
               {"oom", oom_to_json(sample.oom)},
               {"probe", probe_to_json(sample)},
               {"cpu_wait_ns", value_or_null(sample.cpu_wait_ns)},
               {"recording_ns_per_event", recording_ns(sample.recording)},
               {"recorded_events", sample.recording.events},
               {"recorded_steady_events", sample.recording.steady_events},
               {"recording_bytes", sample.recording.bytes},
               {"trace_file", sample.trace_file.empty() ? Json() : Json(sample.trace_file)}});
}

Sample sample_from_json(const std::string& text) try {
  const Json json = Json::parse(text);
  Sample sample;
  json.at("experiment").get_to(sample.experiment);
  json.at("arm").get_to(sample.arm);
  json.at("block").get_to(sample.block);
  json.at("order_index").get_to(sample.order_index);
  sample.cell = cell_from_json(json.at("cell"));
  sample.status = sample_status_from(json.at("status").get<std::string>());
  sample.reason = optional_from<std::string>(json.at("reason")).value_or("");
  json.at("seed").get_to(sample.seed);
  json.at("started").get_to(sample.started);
  json.at("lowering_rules").get_to(sample.rules);
  json.at("step_time_ns").get_to(sample.step_time_ns);
  json.at("stall_time_ns").get_to(sample.stall_time_ns);
  json.at("minor_faults").get_to(sample.minor_faults);
  json.at("setup_ns").get_to(sample.setup_ns);
  json.at("device_setup_ns").get_to(sample.device_setup_ns);
  json.at("samples_per_step").get_to(sample.samples_per_step);
  json.at("flops_per_step").get_to(sample.flops_per_step);
  sample.recomputed_ops_per_step = json.value("recomputed_ops_per_step", std::int64_t{0});
  json.at("parameter_count").get_to(sample.parameter_count);
  for (const Json& loss : json.at("loss"))
    sample.loss.push_back(optional_from<double>(loss).value_or(std::nan("")));
  sample.held_out_accuracy = optional_from<double>(json.at("held_out_accuracy"));
  if (json.contains("zero_weight_share"))  // older files lack it
    sample.zero_weight_share = optional_from<double>(json.at("zero_weight_share"));
  if (const auto figures = json.find("figures"); figures != json.end())
    figures->get_to(sample.figures);
  if (const auto note = json.find("note"); note != json.end())
    sample.note = optional_from<std::string>(*note).value_or("");
  read_memory(json.at("memory"), sample);
  if (const Json& witness = json.at("witness"); !witness.is_null())
    sample.witness = {
        .available = true,
        .heap_live_bytes = witness.at("heap_live_bytes").get<Bytes>(),
        .heap_peak_bytes = witness.at("heap_peak_bytes").get<Bytes>(),
        .heap_allocations_per_step = witness.at("heap_allocations_per_step").get<std::uint64_t>()};
  if (const auto pipeline = json.find("pipeline"); pipeline != json.end())
    sample.pipeline = pipeline_from_json(*pipeline);
  sample.oom = oom_from(json.at("oom"));
  if (const Json& probe = json.at("probe"); !probe.is_null()) {
    probe.at("before_gflops").get_to(sample.probe_before_gflops);
    probe.at("after_gflops").get_to(sample.probe_after_gflops);
  }
  if (const auto wait = json.find("cpu_wait_ns"); wait != json.end())
    sample.cpu_wait_ns = optional_from<std::uint64_t>(*wait);
  sample.recording = {
      .ns_per_event = optional_from<double>(json.at("recording_ns_per_event")).value_or(0),
      .events = json.value("recorded_events", std::uint64_t{0}),
      .steady_events = json.value("recorded_steady_events", std::uint64_t{0}),
      .bytes = json.value("recording_bytes", Bytes{0})};
  sample.trace_file = optional_from<std::string>(json.at("trace_file")).value_or("");
  return sample;
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a sample record: {}", error.what()));
}

std::string to_json(const SampleRequest& request) {
  return dump({{"cell", cell_to_json(request.cell, 0)},
               {"seed", request.seed},
               {"trace_path", request.trace_path}});
}

SampleRequest sample_request_from_json(const std::string& text) try {
  const Json json = Json::parse(text);
  return {.cell = cell_from_json(json.at("cell")),
          .seed = json.at("seed").get<std::uint64_t>(),
          .trace_path = json.at("trace_path").get<std::string>()};
} catch (const Json::exception& error) {
  throw InputError(fmt::format("not a sample request: {}", error.what()));
}

}  // namespace headroom
