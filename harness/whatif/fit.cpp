#include "harness/whatif/fit.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/accumulation.h"
#include "harness/whatif/batch_requests.h"
#include "harness/whatif/training_requests.h"

namespace headroom {
namespace {

ReplayDevice virtual_device(const Spec& spec) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(spec.name());
  if (!kind.traits.simulated)
    throw InputError(
        fmt::format("{}: is a real device, and a plan is simulated; name a card, as in "
                    "meta(card=a100-80gb), or a capacity, as in meta(capacity=4GiB)",
                    spec.to_string()));
  const auto device = kind.create(spec);
  return {.capacity = device->memory().capacity(), .granule = device->memory().granule()};
}

AllocatorFit fit_of(const RequestList& asked, const Spec& allocator, const ReplayDevice& device,
                    std::int64_t bound, std::size_t steps, BatchRequests& batches) {
  AllocatorFit fit{.allocator = allocator, .refused = "", .outcome = {}, .largest = {}};
  try {
    fit.outcome = replay(asked, allocator, device);
    if (!fit.outcome.failure) {  // steps without requests are not in the list
      fit.outcome.ledger.device_allocations.resize(steps);
      fit.outcome.ledger.device_frees.resize(steps);
    }
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
  fit.counts = count_step(plan);
  fit.not_engaged = plan.not_engaged;
  BatchRequests batches(cell, unit);
  std::int64_t bound = 0;
  if (has_free_batch(cell.workload)) {
    bound = find_last_batch(workload->batch_size(), [&](std::int64_t batch) {
      const RequestList* list = batches.of(batch);
      return list != nullptr && list->peak_live_bytes <= fit.device.capacity;
    });
    fit.last_batch_by_live_bytes = bound * unit;
  }
  for (const Spec& allocator : allocators) {
    fit.allocators.push_back(
        fit_of(asked, allocator, fit.device, bound, static_cast<std::size_t>(fit.steps), batches));
    fit.allocators.back().largest.batch *= unit;
  }
  return fit;
}

}  // namespace headroom
