#include "harness/whatif/batch_requests.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/accumulation.h"
#include "harness/whatif/training_requests.h"

namespace headroom {

const RequestList* BatchRequests::of(std::int64_t batch) {
  const auto [found, first] = lists_.try_emplace(batch);
  if (!first) return found->second ? &*found->second : nullptr;
  const Cell cell = with_batch(cell_, batch * unit_);
  try {
    const auto workload = make_micro_batch_workload(cell);
    found->second = training_requests(plan_training(*workload, cell, cell.rules),
                                      cell.warmup_steps + cell.measured_steps);
  } catch (const InputError&) {
    return nullptr;
  }
  return &*found->second;
}

Cell with_batch(Cell cell, std::int64_t batch) {
  cell.workload.set("batch", std::to_string(batch));
  return cell;
}

bool has_free_batch(const Spec& workload) {
  const auto& known = Registry<WorkloadKind>::instance().find(workload.name()).parameters;
  return std::find(known.begin(), known.end(), "batch") != known.end();
}

}  // namespace headroom
