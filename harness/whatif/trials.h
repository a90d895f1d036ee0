// Tries whether training fits a device, either by simulating the allocator alone or by
// training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/whatif/batch_requests.h"
#include "harness/whatif/replay.h"

namespace headroom {

class Trials {
 public:
  virtual ~Trials() = default;
  // Throws NotSupported when the allocator does not exist on this device, or when training fails
  // for another reason than memory.
  virtual bool fits(const Spec& allocator, std::int64_t batch, Bytes capacity) = 0;
  // The first request that was refused; nothing if all were served or none was made.
  virtual std::optional<ReplayFailure> failure(const Spec& allocator, std::int64_t batch,
                                               Bytes capacity) = 0;
};

// Simulated trials: requests are served on virtual capacities. `requests` must count batches one by
// one, contain every batch that is tried, and outlive the trials.
std::unique_ptr<Trials> simulated_trials(BatchRequests& requests, Bytes granule);

// Measured trials: the cell's steps are trained with that allocator, batch and capacity, each trial
// in a separate process.
std::unique_ptr<Trials> trained_trials(const Cell& cell);

}  // namespace headroom
