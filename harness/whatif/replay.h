// Replays the requests of a trace under another strategy on a virtual device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/trace/ledger.h"
#include "harness/trace/oom_explanation.h"
#include "harness/trace/requests.h"

namespace headroom {

struct ReplayDevice {
  Bytes capacity = 0;
  Bytes granule = 2 * kMiB;  // the mapping granularity of CUDA
};

// The first request that was refused.
struct ReplayFailure {
  std::size_t request = 0;  // index into RequestList::requests
  std::int32_t step = 0;
  Role role = Role::activation;
  std::string op;       // "" if the trace names none
  std::string message;  // the strategy's message
  OomExplanation explanation;
};

struct ReplayOutcome {
  std::string allocator;
  std::optional<ReplayFailure> failure;  // none: every request was served
  Reason not_engaged;                    // why the strategy did not engage
  Ledger ledger;                         // up to the failure
  std::uint64_t device_allocations = 0;
  std::uint64_t device_frees = 0;
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
  std::uint64_t replayed = 0;  // requests served
};

// Throws InputError for a strategy that is unknown or refuses its parameters on this capacity.
ReplayOutcome replay(const RequestList& list, const Spec& allocator, const ReplayDevice& device);

// Whether every request is served. Faster than replay(), since nothing is recorded.
bool serves(const RequestList& list, const Spec& allocator, const ReplayDevice& device);

// Measured on this machine: the fastest of several passes, which take at most a twentieth of a
// second in all after the first. Throws OutOfMemory when a request is refused.
double nanoseconds_per_operation(const RequestList& list, const Spec& allocator,
                                 const ReplayDevice& device);

}  // namespace headroom
