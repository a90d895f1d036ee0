// How large a batch trains on a device, and in how little memory, under each allocator: found by
// trying, because neither follows from one trial that failed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/whatif/largest_batch.h"
#include "harness/whatif/replay.h"
#include "harness/whatif/viable_capacity.h"

namespace headroom {

// What stood in the way of the first batch too many.
struct RefusedBatch {
  std::int64_t batch = 0;
  ReplayFailure failure;
  std::vector<Spec> served_by;  // other allocators that find room on that capacity; simulated
};

struct SearchRow {
  Spec allocator;
  std::string refused;                        // why it cannot be tried on this device; or ""
  BatchSearch batches;                        // on the device's capacity
  ViableCapacity capacity;                    // of the batch that was asked for
  std::optional<RefusedBatch> refused_batch;  // absent where live bytes alone are too many
};

struct MemorySearch {
  Cell cell;               // its allocator says nothing
  bool simulated = false;  // the device computes nothing
  ReplayDevice device;
  int steps = 0;           // of each trial
  std::int64_t batch = 0;  // that was asked for
  Bytes peak_live_bytes = 0;
  std::int64_t last_batch_by_live_bytes = 0;  // larger ones were not tried
  std::vector<SearchRow> rows;
};

// Called before what takes time: an allocator's trials, and each of them where it is trained.
struct SearchProgress {
  std::function<void(const Spec& allocator)> allocator;
  std::function<void(std::int64_t batch, Bytes capacity)> trained_trial;
};

// Trials of one allocator: `points` batches besides those a search by halves takes, and `points`
// capacities. steps = cell.warmup_steps + cell.measured_steps. Throws InputError: also where the
// workload has no batch to vary, or the batches are divided (accumulation).
MemorySearch search_memory(const Cell& cell, const std::vector<Spec>& allocators, int points,
                           const SearchProgress& progress);

}  // namespace headroom
