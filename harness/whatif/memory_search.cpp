#include "harness/whatif/memory_search.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/runner/sample_process.h"
#include "harness/training/training_plan.h"
#include "harness/whatif/trials.h"

namespace headroom {
namespace {

void require_searchable(const Cell& cell) {
  if (!has_free_batch(cell.workload))
    throw InputError(
        fmt::format("{}: has no parameter 'batch' to vary", cell.workload.to_string()));
  if (micro_batches_of(cell.accumulation) > 1)
    throw InputError(
        fmt::format("accumulation={}: divides the batch that is searched for; headroom plan counts "
                    "with it",
                    cell.accumulation.to_string()));
}

std::vector<Spec> served_by(const RequestList& list, const ReplayDevice& device,
                            const Spec& without) {
  std::vector<Spec> result;
  for (const std::string& name : Registry<AllocatorStrategy>::instance().names()) {
    if (name == without.name()) continue;
    try {
      if (serves(list, Spec(name), device)) result.emplace_back(name);
    } catch (const NotSupported&) {
      continue;  // the allocator does not exist on this kind of device
    }
  }
  return result;
}

class Search {
 public:
  Search(MemorySearch& result, BatchRequests& requests, Trials& trials, int points,
         const SearchProgress& progress)
      : result_(result),
        requests_(requests),
        trials_(trials),
        points_(points),
        progress_(progress) {}

  SearchRow row_of(const Spec& allocator) {
    SearchRow row;
    row.allocator = allocator;
    try {
      row.batches =
          search_batches(result_.last_batch_by_live_bytes, points_, [&](std::int64_t batch) {
            return requests_.of(batch) != nullptr &&
                   fits(allocator, batch, result_.device.capacity);
          });
      row.capacity = find_viable_capacity(
          result_.peak_live_bytes, result_.device.granule, points_,
          [&](Bytes capacity) { return fits(allocator, result_.batch, capacity); });
      explain(row);
    } catch (const NotSupported& error) {
      row.refused = error.what();
    }
    return row;
  }

 private:
  bool fits(const Spec& allocator, std::int64_t batch, Bytes capacity) {
    if (!result_.simulated) progress_.trained_trial(batch, capacity);
    return trials_.fits(allocator, batch, capacity);
  }

  void explain(SearchRow& row) {
    const std::int64_t batch = row.batches.largest + 1;
    const RequestList* list =
        batch > result_.last_batch_by_live_bytes ? nullptr : requests_.of(batch);
    if (list == nullptr) return;
    if (auto failure = trials_.failure(row.allocator, batch, result_.device.capacity))
      row.refused_batch = {.batch = batch,
                           .failure = std::move(*failure),
                           .served_by = served_by(*list, result_.device, row.allocator)};
  }

  MemorySearch& result_;
  BatchRequests& requests_;
  Trials& trials_;
  int points_;
  const SearchProgress& progress_;
};

}  // namespace

MemorySearch search_memory(const Cell& cell, const std::vector<Spec>& allocators, int points,
                           const SearchProgress& progress) {
  require_searchable(cell);
  if (const auto missing = unsupported_sample(cell))
    throw NotSupported(fmt::format("{}: {}", cell.device.to_string(), missing->reason));
  MemorySearch result;
  result.cell = cell;
  result.steps = cell.warmup_steps + cell.measured_steps;
  {
    const auto device = make_device(cell.device);
    result.simulated = !device->computes();
    result.device = {.capacity = device->memory().capacity(),
                     .granule = device->memory().granule()};
  }
  const auto workload = make_micro_batch_workload(cell);
  result.batch = workload->batch_size();
  BatchRequests requests(cell, 1);
  const RequestList* asked = requests.of(result.batch);
  if (asked == nullptr) {
    plan_training(*workload, cell, cell.rules);  // throws the reason
    throw Error("a batch was refused that can be planned");
  }
  result.peak_live_bytes = asked->peak_live_bytes;
  result.last_batch_by_live_bytes = find_last_batch(result.batch, [&](std::int64_t batch) {
    const RequestList* list = requests.of(batch);
    return list != nullptr && list->peak_live_bytes <= result.device.capacity;
  });
  const auto trials =
      result.simulated ? simulated_trials(requests, result.device.granule) : trained_trials(cell);
  Search search(result, requests, *trials, points, progress);
  for (const Spec& allocator : allocators) {
    progress.allocator(allocator);
    result.rows.push_back(search.row_of(allocator));
  }
  return result;
}

}  // namespace headroom
