// Serves what a trace asked for by another strategy, on a virtual device: what would have
// happened, whether it would have fitted, and in how little.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/spec.h"
#include "harness/trace/ledger.h"
#include "harness/trace/oom_explanation.h"
#include "harness/trace/requests.h"

namespace headroom {

struct ReplayDevice {
  Bytes capacity = 0;
  Bytes granule = 2 * kMiB;  // what CUDA maps at once
};

// The first request that found no room.
struct ReplayFailure {
  std::size_t request = 0;  // index into RequestList::requests
  std::int32_t step = 0;
  Role role = Role::activation;
  std::string op;       // "" where the trace names none
  std::string message;  // the strategy's own
  OomExplanation explanation;
};

struct ReplayOutcome {
  std::string allocator;
  std::optional<ReplayFailure> failure;  // none: every request was served
  std::string not_engaged;               // why the strategy did not do what its name says; or ""
  Ledger ledger;                         // up to the failure
  std::uint64_t device_allocations = 0;
  std::uint64_t device_frees = 0;
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
  std::uint64_t replayed = 0;  // requests served
};

// Throws InputError for a strategy that is unknown or refuses its parameters on this capacity.
ReplayOutcome replay(const RequestList& list, const Spec& allocator, const ReplayDevice& device);

// Whether every request was served; nothing is recorded, so this is the quickest way to know.
bool serves(const RequestList& list, const Spec& allocator, const ReplayDevice& device);

// Measured here and now: the fastest of several passes, at most a fifth of a second in all after
// the first. Throws OutOfMemory where a request is refused.
double nanoseconds_per_operation(const RequestList& list, const Spec& allocator,
                                 const ReplayDevice& device);

}  // namespace headroom
