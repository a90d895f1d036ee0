#include "harness/cli/text/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/cli/planned_cells.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/cli/text/pytorch_text.h"
#include "harness/plan/axes.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"
#include "harness/workload/workload.h"

namespace headroom {
namespace {

bool has_free_batch(const Fit& fit) { return fit.last_batch_by_live_bytes.has_value(); }

// The value of the last step, when caches are warm.
std::uint64_t last(const std::vector<std::uint64_t>& per_step) {
  return per_step.empty() ? 0 : per_step.back();
}

std::string verdict(const AllocatorFit& fit) {
  if (!fit.outcome.failure) return "fits";
  if (fit.outcome.failure->step > 0)
    return fmt::format("out of memory in step {}", fit.outcome.failure->step);
  return fit.outcome.failure->role == Role::workspace
             ? "out of memory for the pool of captured steps"
             : "out of memory for the weights and states";
}

void print_roles(const Fit& fit) {
  std::vector<std::pair<Bytes, std::string_view>> parts;
  for (std::size_t role = 0; role < fit.live_at_peak.size(); ++role)
    if (fit.live_at_peak[role] > 0)
      parts.emplace_back(fit.live_at_peak[role], to_string(static_cast<Role>(role)));
  std::sort(parts.rbegin(), parts.rend());
  constexpr Bytes kSmall = 200;  // roles with less than 1/200 of the peak are summed as "other"
  std::vector<std::string> texts;
  Bytes other = 0;
  for (const auto& [bytes, role] : parts) {
    if (bytes * kSmall < fit.peak_live_bytes)
      other += bytes;
    else
      texts.push_back(fmt::format("{} {}", role, format_bytes(bytes)));
  }
  if (other > 0) texts.push_back(fmt::format("other {}", format_bytes(other)));
  out::print("  of which {}\n", fmt::join(texts, ", "));
}

std::string name_of(const Spec& device) { return device.text("card", "the device"); }

const AllocatorFit& usual_row(const Fit& fit) {
  const auto row = std::find_if(fit.allocators.begin(), fit.allocators.end(), [](const auto& one) {
    return one.allocator.to_string() == kUsualAllocator;
  });
  return row != fit.allocators.end() ? *row : fit.allocators.front();
}

std::string largest_of(const Fit& fit, const AllocatorFit& row) {
  if (!has_free_batch(fit)) return "";
  if (row.largest.batch == 0) return " No batch fits.";
  return fmt::format(" Up to batch {} fits.", row.largest.batch);
}

std::string answer_of(const Fit& fit, const AllocatorFit& row) {
  std::string name = row.allocator.to_string();
  if (name == kUsualAllocator) name = "PyTorch's caching allocator";
  const std::string device = name_of(fit.cell.device);
  const std::string capacity = format_bytes(fit.device.capacity);
  if (!row.refused.empty()) return fmt::format("{} cannot run here: {}", name, row.refused);
  if (!row.outcome.failure)
    return fmt::format("YES: {} reserves at most {} of the {} of {}.{}", name,
                       format_bytes(row.outcome.ledger.reserved.overall_peak), capacity, device,
                       largest_of(fit, row));
  const std::string needs = fmt::format("{} of tensors", format_bytes(fit.peak_live_bytes));
  if (fit.peak_live_bytes > fit.device.capacity)
    return fmt::format("NO: {}. It needs {}, {} has {}.{}", verdict(row), needs, device, capacity,
                       largest_of(fit, row));
  return fmt::format("NO: {}. Its {} would fit into the {} of {}, but {} cannot place them.{}",
                     verdict(row), needs, capacity, device, name, largest_of(fit, row));
}

// Other allocators that serve the batch, the least reserved memory first.
std::vector<const AllocatorFit*> others_that_fit(const Fit& fit) {
  std::vector<const AllocatorFit*> rows;
  for (const AllocatorFit& row : fit.allocators)
    if (row.serves()) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [](const AllocatorFit* a, const AllocatorFit* b) {
    return a->outcome.ledger.reserved.overall_peak < b->outcome.ledger.reserved.overall_peak;
  });
  return rows;
}

void print_advice_row(const std::string& change, const Fit& fit, const AllocatorFit& row) {
  out::print("  {:<46} {:>11}{}\n", change, format_bytes(row.outcome.ledger.reserved.overall_peak),
             has_free_batch(fit) ? fmt::format("   up to batch {}", row.largest.batch) : "");
}

void print_advice(const Fit& fit, const std::vector<Change>& changes) {
  const auto others = others_that_fit(fit);
  if (others.empty() && changes.empty()) {
    out::print("None of the changes tried makes it fit; headroom plan --help names the axes.\n");
    return;
  }
  out::print("What would fit, with the memory reserved at the peak:\n");
  constexpr std::size_t kMostOthers = 3;
  for (std::size_t i = 0; i < std::min(kMostOthers, others.size()); ++i)
    print_advice_row("allocator=" + others[i]->allocator.to_string(), fit, *others[i]);
  for (const Change& change : changes) {
    std::vector<std::string> words;
    for (const auto& [axis, value] : change.axes)
      words.push_back(fmt::format("{}={}", axis, value));
    print_advice_row(fmt::format("{}", fmt::join(words, " + ")), change.fit,
                     change.fit.allocators.front());
  }
}

void print_row(const Fit& fit, const AllocatorFit& row, std::size_t width) {
  if (!row.refused.empty()) {
    out::print("{:<{}} not available here: {}\n", row.allocator.to_string(), width, row.refused);
    return;
  }
  const Ledger& ledger = row.outcome.ledger;
  const bool served = !row.outcome.failure;
  const auto peak = [&](const Moments& moments) {
    return served ? format_bytes(moments.overall_peak) : "-";
  };
  out::print("{:<{}} {:>11} {:>11} {:>11} {:>9} {:>9} {:>8}  {}\n", row.allocator.to_string(),
             width, peak(ledger.requested), peak(ledger.allocated), peak(ledger.reserved),
             has_free_batch(fit) ? std::to_string(row.largest.batch) : "-",
             served ? std::to_string(last(ledger.device_allocations)) : "-",
             served ? std::to_string(last(ledger.device_frees)) : "-", verdict(row));
}

// Prints the defaults that a short command leaves unsaid. Of a batch it shows one input: the first
// with two or more dimensions, else the first.
void print_assumptions(const Fit& fit) {
  const Program program = make_workload(fit.cell.workload)->training_forward();
  const Value* shown = nullptr;
  for (const ValueId id : program.inputs) {
    const Value& input = program.value(id);
    if (shown == nullptr || (shown->shape.size() < 2 && input.shape.size() > 1)) shown = &input;
  }
  out::print(
      "Counted with {}{}{}\n", axes_beside_allocator(fit.cell),
      shown ? fmt::format("; a batch has {} of {}", shown->name, fmt::join(shown->shape, "x")) : "",
      fit.cell.optimizer.name() == "sgd" ? ". Adam keeps more: -a optimizer=adam" : "");
}

void print_needs(const Fit& fit) {
  print_assumptions(fit);
  out::print("{} parameters; {} of tensors at the peak, below which no allocator can go\n",
             fit.parameters, format_bytes(fit.peak_live_bytes));
  print_roles(fit);
  if (fit.counts.offloaded > 0)
    out::print("In addition up to {} of host memory; {} are copied there and back in each step\n",
               format_bytes(fit.counts.host_peak), format_bytes(fit.counts.offloaded));
}

void print_table(const Fit& fit) {
  out::print("\n{}: {} allocations and frees in {} steps", axes_beside_allocator(fit.cell),
             fit.requests, fit.steps);
  if (has_free_batch(fit))
    out::print("; the tensors alone fit up to batch {}", *fit.last_batch_by_live_bytes);
  out::print("\n");
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
  json["not_engaged"] = value_or_null(outcome.not_engaged);
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
               {"not_engaged", value_or_null(fit.not_engaged)},
               {"last_batch_by_live_bytes", value_or_null(fit.last_batch_by_live_bytes)},
               {"allocators", Json::array()}};
  for (const AllocatorFit& row : fit.allocators)
    json["allocators"].push_back(to_json(row, has_free_batch(fit)));
  return json;
}

// A change that makes the batch fit, under one allocator.
Json to_json(const Change& change) {
  const AllocatorFit& row = change.fit.allocators.front();
  Json axes;
  for (const auto& [axis, value] : change.axes) axes[axis] = value;
  Json json = {{"axes", axes},
               {"allocator", row.allocator.to_string()},
               {"reserved_bytes_peak", row.outcome.ledger.reserved.overall_peak}};
  json["largest_batch"] = has_free_batch(change.fit) ? Json(row.largest.batch) : Json();
  return json;
}

}  // namespace

void print_fits(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                const std::optional<PytorchNeeds>& pytorch, bool tables) {
  const Fit& first = fits.front();
  if (fits.size() == 1) {
    out::print("{}\n", answer_of(first, usual_row(first)));
    if (usual_row(first).outcome.failure) print_advice(first, changes);
    print_needs(first);
  } else {
    for (const Fit& fit : fits)
      out::print("{}\n  {}\n", axes_beside_allocator(fit.cell), answer_of(fit, usual_row(fit)));
  }
  out::print(
      "Simulated: {} training steps of Headroom's own network were counted, none was computed. "
      "Exact for\nthat network; a CUDA context and libraries come on top. PyTorch's own bytes: "
      "--pytorch. For your own\nscript: headroom gpu.\n",
      first.steps);
  if (pytorch) print_pytorch(first, *pytorch);
  if (!tables) {
    out::print("Every allocator with its figures: the same command with --all\n");
    return;
  }
  for (const Fit& fit : fits) {
    print_table(fit);
    if (fits.size() > 1) print_needs(fit);
  }
  out::print(
      "\nDevice calls: allocations and mappings (taken), frees and unmappings (given) of the last "
      "step.\nWhat they and the allocator itself cost in time is not measured here; headroom run "
      "does.\n");
  if (has_free_batch(first))
    out::print(
        "Largest batch: it fits and the next one does not. Larger ones could fit again, as far as "
        "the\nlive bytes let them; not all were tried.\n");
}

void print_fits_json(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                     const std::optional<PytorchNeeds>& pytorch) {
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
               {"plans", Json::array()},
               {"advice", Json::array()}};
  for (const Fit& fit : fits) json["plans"].push_back(to_json(fit));
  for (const Change& change : changes) json["advice"].push_back(to_json(change));
  if (pytorch) json["pytorch"] = to_json(*pytorch);
  print_json(json);
}

}  // namespace headroom
