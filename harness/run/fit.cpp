#include "harness/run/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/accumulation.h"
#include "harness/run/training_requests.h"

namespace headroom {
namespace {

ReplayDevice virtual_device(const Spec& spec) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(spec.name());
  if (kind.name != "meta")
    throw InputError(
        fmt::format("{}: is a real device, and a plan is simulated; name a card, as in "
                    "meta(card=a100-80gb), or a capacity, as in meta(capacity=4GiB)",
                    spec.to_string()));
  const auto device = kind.create(spec);
  return {.capacity = device->memory().capacity(), .granule = device->memory().granule()};
}

bool has_free_batch(const Spec& workload) {
  const auto& known = Registry<WorkloadKind>::instance().find(workload.name()).parameters;
  return std::find(known.begin(), known.end(), "batch") != known.end();
}

// The requests of one cell at any batch, each made once. Batches are counted in `unit`, the number
// of micro-batches that a batch must be divided into.
class Batches {
 public:
  Batches(const Cell& cell, std::int64_t unit) : cell_(cell), unit_(unit) {}

  // Null where the workload refuses the batch.
  const RequestList* of(std::int64_t batch) {
    const auto [found, first] = lists_.try_emplace(batch);
    if (!first) return found->second ? &*found->second : nullptr;
    Cell cell = cell_;
    cell.workload.set("batch", std::to_string(batch * unit_));
    try {
      found->second = requests_of(*make_micro_batch_workload(cell), cell);
    } catch (const InputError&) {
      return nullptr;
    }
    return &*found->second;
  }

 private:
  static RequestList requests_of(const Workload& workload, const Cell& cell) {
    return training_requests(plan_training(workload, cell, cell.rules),
                             cell.warmup_steps + cell.measured_steps);
  }

  const Cell& cell_;
  std::int64_t unit_;
  std::map<std::int64_t, std::optional<RequestList>> lists_;
};

AllocatorFit fit_of(const RequestList& asked, const Spec& allocator, const ReplayDevice& device,
                    std::int64_t bound, Batches& batches) {
  AllocatorFit fit{.allocator = allocator, .refused = "", .outcome = {}, .largest = {}};
  try {
    fit.outcome = replay(asked, allocator, device);
    fit.largest = find_largest_batch(bound, [&](std::int64_t batch) {
      const RequestList* list = batches.of(batch);
      return list != nullptr && serves(*list, allocator, device);
    });
  } catch (const NotSupported& error) {
    fit.refused = error.what();
  }
  return fit;
}

}  // namespace

Fit find_fit(const Cell& cell, const std::vector<Spec>& allocators) {
  Fit fit;
  fit.cell = cell;
  fit.device = virtual_device(cell.device);
  fit.steps = cell.warmup_steps + cell.measured_steps;
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan = plan_training(*workload, cell, cell.rules);
  const RequestList asked = training_requests(plan, fit.steps);
  const std::int64_t unit = plan.micro_batches;
  fit.batch = workload->batch_size() * unit;
  for (const Value* value : plan.persistent_values())
    if (value->role == Role::weight) fit.parameters += element_count(value->shape);
  fit.requests = asked.requests.size();
  fit.peak_live_bytes = asked.peak_live_bytes;
  fit.live_at_peak = live_bytes_at_peak(asked);
  Batches batches(cell, unit);
  std::int64_t bound = 0;
  if (has_free_batch(cell.workload)) {
    bound = find_last_batch(workload->batch_size(), [&](std::int64_t batch) {
      const RequestList* list = batches.of(batch);
      return list != nullptr && list->peak_live_bytes <= fit.device.capacity;
    });
    fit.last_batch_by_live_bytes = bound * unit;
  }
  for (const Spec& allocator : allocators) {
    fit.allocators.push_back(fit_of(asked, allocator, fit.device, bound, batches));
    fit.allocators.back().largest.batch *= unit;
  }
  return fit;
}

}  // namespace headroom
