// What a stage of an input pipeline did in one run, for the record of a sample.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/base/units.h"

namespace headroom {

struct StageReport {
  std::string name;            // as in the spec: prefetch(2)
  std::uint64_t elements = 0;  // handed on: records or batches
  // What the stage before it waited, for this one and all behind it; sums over threads.
  std::uint64_t wait_ns = 0;
  std::optional<Bytes> host_bytes_peak = std::nullopt;  // kept by this stage; absent: not known
  std::map<std::string, std::uint64_t> counters = {};   // the stage's own: hits, depth, …

  bool operator==(const StageReport&) const = default;
};

}  // namespace headroom
