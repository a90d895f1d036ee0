// The work of a stage of an input pipeline, for the record of a sample.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/base/units.h"

namespace headroom {

struct StageReport {
  std::string name;            // as written in the spec: prefetch(2)
  std::uint64_t elements = 0;  // records or batches delivered
  // Time that the stage in front waited for this stage and all behind it, summed over threads.
  std::uint64_t wait_ns = 0;
  std::optional<Bytes> host_bytes_peak = std::nullopt;  // held by this stage; absent if unknown
  std::map<std::string, std::uint64_t> counters = {};   // specific to the stage: hits, depth, …

  bool operator==(const StageReport&) const = default;
};

}  // namespace headroom
