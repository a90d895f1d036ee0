#include "harness/cli/text/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/cli/planned_cells.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/plan/axes.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

bool has_free_batch(const Fit& fit) { return fit.last_batch_by_live_bytes.has_value(); }

// The value of the last step, when caches are warm.
std::uint64_t last(const std::vector<std::uint64_t>& per_step) {
  return per_step.empty() ? 0 : per_step.back();
}

std::string verdict(const AllocatorFit& fit) {
  if (!fit.outcome.failure) return "fits";
  if (fit.outcome.failure->step > 0)
    return fmt::format("no room in step {}", fit.outcome.failure->step);
  return fit.outcome.failure->role == Role::workspace ? "no room for the pool of captured steps"
                                                      : "no room for the weights and states";
}

void print_roles(const Fit& fit) {
  std::vector<std::pair<Bytes, std::string_view>> parts;
  for (std::size_t role = 0; role < fit.live_at_peak.size(); ++role)
    if (fit.live_at_peak[role] > 0)
      parts.emplace_back(fit.live_at_peak[role], to_string(static_cast<Role>(role)));
  std::sort(parts.rbegin(), parts.rend());
  std::vector<std::string> texts;
  for (const auto& [bytes, role] : parts)
    texts.push_back(fmt::format("{} {}", role, format_bytes(bytes)));
  out::print("  of it {}\n", fmt::join(texts, ", "));
}

void print_row(const Fit& fit, const AllocatorFit& row, std::size_t width) {
  if (!row.refused.empty()) {
    out::print("{:<{}} not here: {}\n", row.allocator.to_string(), width, row.refused);
    return;
  }
  const Ledger& ledger = row.outcome.ledger;
  const bool served = !row.outcome.failure;
  const auto peak = [&](const Moments& rung) {
    return served ? format_bytes(rung.overall_peak) : "-";
  };
  out::print("{:<{}} {:>11} {:>11} {:>11} {:>9} {:>9} {:>8}  {}\n", row.allocator.to_string(),
             width, peak(ledger.requested), peak(ledger.allocated), peak(ledger.reserved),
             has_free_batch(fit) ? std::to_string(row.largest.batch) : "-",
             served ? std::to_string(last(ledger.device_allocations)) : "-",
             served ? std::to_string(last(ledger.device_frees)) : "-", verdict(row));
}

void print(const Fit& fit) {
  out::print("\n{}: {} parameters, {} allocations and frees in {} steps\n",
             axes_beside_allocator(fit.cell), fit.parameters, fit.requests, fit.steps);
  out::print("Live bytes at their highest, below which no allocator can go: {}\n",
             format_bytes(fit.peak_live_bytes));
  print_roles(fit);
  if (fit.counts.offloaded > 0)
    out::print("Beside them {} of the host at their highest; {} are copied there and back a step\n",
               format_bytes(fit.counts.host_peak), format_bytes(fit.counts.offloaded));
  if (has_free_batch(fit))
    out::print("  they alone fit up to batch {}\n", *fit.last_batch_by_live_bytes);
  std::size_t width = 9;
  for (const AllocatorFit& row : fit.allocators)
    width = std::max(width, row.allocator.to_string().size());
  out::print("\n{:<{}} {:>35} {:>9} {:>18}\n", "", width, "peak", "largest", "device calls a step");
  out::print("{:<{}} {:>11} {:>11} {:>11} {:>9} {:>9} {:>8}  at batch {}\n", "allocator", width,
             "requested", "allocated", "reserved", "batch", "taken", "given", fit.batch);
  for (const AllocatorFit& row : fit.allocators) print_row(fit, row, width);
}

Json to_json(const AllocatorFit& row, bool free_batch) {
  Json json = {{"allocator", row.allocator.to_string()}};
  if (!row.refused.empty()) {
    json["status"] = "unsupported";
    json["reason"] = row.refused;
    return json;
  }
  const ReplayOutcome& outcome = row.outcome;
  json["status"] = outcome.failure ? "oom" : "ok";
  if (outcome.failure) {
    json["failure"] = {{"step", outcome.failure->step},
                       {"op", outcome.failure->op},
                       {"role", to_string(outcome.failure->role)},
                       {"requested_bytes", outcome.failure->explanation.requested_bytes},
                       {"message", outcome.failure->message}};
  } else {
    json["requested_bytes_peak"] = outcome.ledger.requested.overall_peak;
    json["allocated_bytes_peak"] = outcome.ledger.allocated.overall_peak;
    json["reserved_bytes_peak"] = outcome.ledger.reserved.overall_peak;
    json["device_allocations_per_step"] = outcome.ledger.device_allocations;
    json["device_frees_per_step"] = outcome.ledger.device_frees;
  }
  json["not_engaged"] = outcome.not_engaged.empty() ? Json() : Json(outcome.not_engaged);
  if (free_batch)
    json["largest_batch"] = {{"batch", row.largest.batch}, {"tried", row.largest.tried}};
  return json;
}

Json to_json(const Fit& fit) {
  Json roles;
  for (std::size_t role = 0; role < fit.live_at_peak.size(); ++role)
    roles[std::string(to_string(static_cast<Role>(role)))] = fit.live_at_peak[role];
  Json axes;
  for (const std::string& axis : axis_names())
    if (axis != "workload" && axis != "device" && axis != "allocator")
      axes[axis] = axis_value(fit.cell, axis);
  Json json = {{"axes", axes},
               {"parameters", fit.parameters},
               {"requests", fit.requests},
               {"peak_live_bytes", fit.peak_live_bytes},
               {"live_bytes_at_peak", roles},
               {"ops_per_step", fit.counts.ops},
               {"recomputed_ops_per_step", fit.counts.recomputed},
               {"flops_per_step", fit.counts.flops},
               {"touched_bytes_per_step", fit.counts.touched},
               {"offloaded_bytes_per_step", fit.counts.offloaded},
               {"host_bytes_peak", fit.counts.host_peak},
               {"not_engaged", fit.not_engaged.empty() ? Json() : Json(fit.not_engaged)},
               {"last_batch_by_live_bytes",
                has_free_batch(fit) ? Json(*fit.last_batch_by_live_bytes) : Json()},
               {"allocators", Json::array()}};
  for (const AllocatorFit& row : fit.allocators)
    json["allocators"].push_back(to_json(row, has_free_batch(fit)));
  return json;
}

}  // namespace

void print_fits(const std::vector<Fit>& fits) {
  const Fit& first = fits.front();
  out::print("{} on {}: {} in granules of {}\n", first.cell.workload.to_string(),
             first.cell.device.to_string(), format_bytes(first.device.capacity),
             format_bytes(first.device.granule));
  out::print(
      "Simulated: {} training steps counted, none computed. Bytes are exact for the Programs here; "
      "what\na CUDA context and libraries take besides is not in them.\n",
      first.steps);
  for (const Fit& fit : fits) print(fit);
  out::print(
      "\nDevice calls: allocations and mappings (taken), frees and unmappings (given) of the last "
      "step.\nWhat they and the allocator itself cost in time is not measured here; headroom run "
      "does.\n");
  if (has_free_batch(first))
    out::print(
        "Largest batch: it fits and the next one does not. Larger ones could fit again, as far as "
        "the\nlive bytes let them; not all were tried.\n");
}

void print_fits_json(const std::vector<Fit>& fits) {
  const Fit& first = fits.front();
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "plan"},
               {"simulated", true},
               {"workload", first.cell.workload.to_string()},
               {"device", first.cell.device.to_string()},
               {"capacity_bytes", first.device.capacity},
               {"granule_bytes", first.device.granule},
               {"steps", first.steps},
               {"batch", first.batch},
               {"plans", Json::array()}};
  for (const Fit& fit : fits) json["plans"].push_back(to_json(fit));
  print_json(json);
}

}  // namespace headroom
