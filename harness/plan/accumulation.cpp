#include "harness/plan/accumulation.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/program/pass.h"

namespace headroom {

int micro_batches_of(const Spec& accumulation) {
  check_strategy<AccumulationStrategy>(accumulation);
  if (accumulation.name() == AccumulationStrategy::kNeutral) return 1;
  const auto& strategy = Registry<AccumulationStrategy>::instance().find(accumulation.name());
  const int count = strategy.micro_batches(accumulation);
  if (count < 2)
    throw InputError(fmt::format("{}: a step has {} micro-batches; accumulation needs at least 2",
                                 accumulation.to_string(), count));
  return count;
}

std::unique_ptr<Workload> make_micro_batch_workload(const Cell& cell) {
  auto whole = make_workload(cell.workload);
  const int count = micro_batches_of(cell.accumulation);
  if (count == 1) return whole;
  const std::int64_t batch = whole->batch_size();
  if (batch % count != 0)
    throw InputError(
        fmt::format("{}: a batch of {} cannot be divided into {} micro-batches; "
                    "choose a multiple of {} as batch",
                    cell.accumulation.to_string(), batch, count, count));
  Spec divided = cell.workload;
  divided.set("batch", std::to_string(batch / count));
  return make_workload(divided);
}

}  // namespace headroom
