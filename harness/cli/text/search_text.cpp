#include "harness/cli/text/search_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "harness/cli/planned_cells.h"
#include "harness/cli/text/oom_text.h"
#include "harness/cli/text/plan_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

std::string in_words(const std::vector<std::int64_t>& batches) {
  constexpr std::size_t kToName = 4;
  if (batches.empty()) return "none";
  const auto named = std::span(batches).first(std::min(kToName, batches.size()));
  const std::size_t more = batches.size() - named.size();
  return fmt::format("{}{}", fmt::join(named, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

void print_row(const MemorySearch& search, const SearchRow& row, std::size_t width) {
  if (!row.refused.empty()) {
    out::print("{:<{}} not available here: {}\n", row.allocator.to_string(), width, row.refused);
    return;
  }
  const auto& smallest = row.capacity.smallest;
  const double above =
      smallest ? static_cast<double>(*smallest) / static_cast<double>(search.peak_live_bytes) - 1
               : 0;
  out::print("{:<{}} {:>7} {:>20} {:>13} {:>9} {:>6}\n", row.allocator.to_string(), width,
             row.batches.largest, in_words(row.batches.holes),
             smallest ? format_bytes(*smallest) : "-",
             smallest ? fmt::format("{:+.1f} %", 100 * above) : "-", row.capacity.holes.size());
}

std::vector<std::string> names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.to_string());
  return names;
}

void print_refusal(const SearchRow& row) {
  out::print("\nBatch {} under {}: {}", row.refused_batch->batch, row.allocator.to_string(),
             failure_text(row.refused_batch->failure));
  if (row.refused_batch->served_by.empty())
    out::print("  Simulated: no other strategy would have served it in this capacity.\n");
  else
    out::print("  Simulated: would have been served by {}.\n",
               fmt::join(names_of(row.refused_batch->served_by), ", "));
}

void print(const MemorySearch& search) {
  out::print("\n{}\n", axes_beside_allocator(search.cell));
  out::print("Live bytes of batch {}: {}; ", search.batch, format_bytes(search.peak_live_bytes));
  if (search.last_batch_by_live_bytes > 0)
    out::print("they alone let batches up to {} fit, larger ones were not tried.\n\n",
               search.last_batch_by_live_bytes);
  else
    out::print(
        "even the smallest batch has more live bytes than the device holds, so none was "
        "tried.\n\n");
  std::size_t width = 9;
  for (const SearchRow& row : search.rows)
    width = std::max(width, row.allocator.to_string().size());
  out::print("{:<{}} {:>7} {:>20} {:>13} {:>9} {:>6}\n", "", width, "largest", "smaller batches",
             "least memory", "above", "its");
  out::print("{:<{}} {:>7} {:>20} {:>13} {:>9} {:>6}\n", "allocator", width, "batch", "that fail",
             fmt::format("at batch {}", search.batch), "live", "holes");
  Bytes coarsest = 0;
  for (const SearchRow& row : search.rows) {
    print_row(search, row, width);
    coarsest = std::max(coarsest, row.capacity.resolution);
  }
  if (coarsest > 0) out::print("The least memory is known to {}.\n", format_bytes(coarsest));
  for (const SearchRow& row : search.rows)
    if (row.refused_batch) print_refusal(row);
}

// The first line: for PyTorch's default allocator if it was tried, else for the first that was.
void print_answer(const MemorySearch& search, bool with_axes) {
  const SearchRow* usual = nullptr;
  const SearchRow* most = nullptr;
  for (const SearchRow& row : search.rows) {
    if (!row.refused.empty()) continue;
    if (usual == nullptr || row.allocator == Spec(kUsualAllocator)) usual = &row;
    if (most == nullptr || row.batches.largest > most->batches.largest) most = &row;
  }
  if (usual == nullptr) {
    out::print("NONE of these allocators can be tried on this device.\n");
    return;
  }
  const auto& smallest = usual->capacity.smallest;
  out::print("{}The largest batch that {} is {} under {}; batch {} {}.\n",
             with_axes ? axes_beside_allocator(search.cell) + ": " : "",
             search.simulated ? "fits (simulated)" : "trains", usual->batches.largest,
             usual->allocator.to_string(), search.batch,
             smallest ? fmt::format("needs {}", format_bytes(*smallest))
                      : "was served in none of the capacities tried");
  if (most->batches.largest > usual->batches.largest)
    out::print("The largest of all: batch {} under {}.\n", most->batches.largest,
               most->allocator.to_string());
}

Json to_json(const SearchRow& row) {
  Json json = {{"allocator", row.allocator.to_string()}};
  if (!row.refused.empty()) {
    json["status"] = "unsupported";
    json["reason"] = row.refused;
    return json;
  }
  json["status"] = "ok";
  json["largest_batch"] = row.batches.largest;
  json["batch_holes"] = row.batches.holes;
  json["batches_tried"] = row.batches.tried;
  add_capacity(json, row.capacity);
  json["refused"] = nullptr;
  if (row.refused_batch) {
    json["refused"] = {{"batch", row.refused_batch->batch},
                       {"failure", to_json(row.refused_batch->failure)},
                       {"served_by_simulated", names_of(row.refused_batch->served_by)}};
  }
  return json;
}

}  // namespace

void print_searches(const std::vector<MemorySearch>& searches) {
  const MemorySearch& first = searches.front();
  for (const MemorySearch& search : searches) print_answer(search, searches.size() > 1);
  out::print("{} on {}: which batches train, and in how little memory\n",
             first.cell.workload.to_string(), first.cell.device.to_string());
  if (first.simulated)
    out::print("Simulated: {} training steps counted per trial, none computed.\n", first.steps);
  else
    out::print("Measured: each trial trained {} steps in a process of its own.\n", first.steps);
  for (const MemorySearch& search : searches) print(search);
  out::print(
      "\nMore memory or a smaller batch need not help: holes are trials that failed although a "
      "smaller\ncapacity, or a larger batch, was served. Between the trials there may be "
      "others.\n");
}

void print_searches_json(const std::vector<MemorySearch>& searches) {
  const MemorySearch& first = searches.front();
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "search"},
               {"simulated", first.simulated},
               {"workload", first.cell.workload.to_string()},
               {"device", first.cell.device.to_string()},
               {"capacity_bytes", first.device.capacity},
               {"granule_bytes", first.device.granule},
               {"steps", first.steps},
               {"batch", first.batch},
               {"searches", Json::array()}};
  for (const MemorySearch& search : searches) {
    Json one = {{"axes", axes_beside_allocator(search.cell)},
                {"peak_live_bytes", search.peak_live_bytes},
                {"last_batch_by_live_bytes", search.last_batch_by_live_bytes},
                {"allocators", Json::array()}};
    for (const SearchRow& row : search.rows) one["allocators"].push_back(to_json(row));
    json["searches"].push_back(one);
  }
  print_json(json);
}

}  // namespace headroom
