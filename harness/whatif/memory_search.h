// Searches for the largest batch and the smallest capacity of a cell under each allocator.
// Many trials are needed, because one that fails proves nothing about other batches or capacities.
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

// Why the smallest batch above the largest one that fits was refused.
struct RefusedBatch {
  std::int64_t batch = 0;
  ReplayFailure failure;
  std::vector<Spec> served_by;  // other allocators that serve it on that capacity; simulated
};

struct SearchRow {
  Spec allocator;
  std::string refused;      // why the allocator cannot be tried on this device, or ""
  BatchSearch batches;      // on the device's capacity
  ViableCapacity capacity;  // of the requested batch
  std::optional<RefusedBatch> refused_batch;  // absent if live bytes alone exceed the capacity
};

struct MemorySearch {
  Cell cell;               // its allocator is irrelevant
  bool simulated = false;  // the device computes nothing
  ReplayDevice device;
  int steps = 0;           // of each trial
  std::int64_t batch = 0;  // the requested batch
  Bytes peak_live_bytes = 0;
  std::int64_t last_batch_by_live_bytes = 0;  // larger ones were not tried
  std::vector<SearchRow> rows;
};

// Callbacks before slow parts: before an allocator's trials, and before each trial that trains.
struct SearchProgress {
  std::function<void(const Spec& allocator)> allocator;
  std::function<void(std::int64_t batch, Bytes capacity)> trained_trial;
};

// Each allocator is tried with `points` batches besides those of the bisection, and with `points`
// capacities. steps = cell.warmup_steps + cell.measured_steps. Throws InputError, also when the
// workload has no batch to vary or the batches are divided (accumulation).
MemorySearch search_memory(const Cell& cell, const std::vector<Spec>& allocators, int points,
                           const SearchProgress& progress);

}  // namespace headroom
