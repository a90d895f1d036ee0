// The parameters of `partition(…)`: which modules share the device, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

struct PartitionOptions {
  struct Part {
    std::string name;  // as written: "layer3+layer4+rest"
    Bytes share = 0;
    Bytes then = 0;  // the share after `after` steps
  };
  std::vector<Part> parts;
  std::vector<std::pair<std::string, std::size_t>> modules;  // with their parts, longest name first
  std::size_t rest = 0;    // index of the part that serves all other modules
  std::int64_t after = 0;  // number of steps; 0: shares stay the same

  // Index of the part that serves `name` (AllocationHint::name). When several modules match, the
  // one with the longest name decides.
  std::size_t part_of(std::string_view name) const;
};

// Throws InputError.
PartitionOptions read_partition_options(const Spec& spec, Bytes capacity);

}  // namespace headroom
