// Whether a training run fits a device: asked of the allocator's code alone, or by training it.
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
  // Throws NotSupported where the allocator cannot be had on this device, or the run ends otherwise
  // than well or for want of memory.
  virtual bool fits(const Spec& allocator, std::int64_t batch, Bytes capacity) = 0;
  // The first request that found no room; nothing where all did, or before any was made.
  virtual std::optional<ReplayFailure> failure(const Spec& allocator, std::int64_t batch,
                                               Bytes capacity) = 0;
};

// Simulated: requests are served on capacities that exist on paper. `requests` counts batches one
// by one, has those that are asked about, and must outlive the trials.
std::unique_ptr<Trials> simulated_trials(BatchRequests& requests, Bytes granule);

// Measured: the cell's steps are trained with that allocator, batch and capacity, every trial in a
// process of its own.
std::unique_ptr<Trials> trained_trials(const Cell& cell);

}  // namespace headroom
