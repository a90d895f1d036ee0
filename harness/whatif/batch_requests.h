// The requests of a cell at any batch; each batch is computed once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "harness/plan/cell.h"
#include "harness/trace/requests.h"

namespace headroom {

class BatchRequests {
 public:
  // Batches are counted in `unit`, the number of micro-batches that a batch must be divided into.
  // `cell` must outlive this; the requests cover its warm-up and measured steps.
  BatchRequests(const Cell& cell, std::int64_t unit) : cell_(cell), unit_(unit) {}

  // Null when the workload refuses the batch.
  const RequestList* of(std::int64_t batch);

 private:
  const Cell& cell_;
  std::int64_t unit_;
  std::map<std::int64_t, std::optional<RequestList>> lists_;
};

// The cell with `batch` samples per step.
Cell with_batch(Cell cell, std::int64_t batch);

// Whether the workload has a parameter `batch` to vary.
bool has_free_batch(const Spec& workload);

}  // namespace headroom
