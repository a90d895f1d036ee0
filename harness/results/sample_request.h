// The runner's request to the process that it starts for one sample.
#pragma once

#include <cstdint>
#include <string>

#include "harness/plan/cell.h"

namespace headroom {

struct SampleRequest {
  Cell cell;
  std::uint64_t seed = 0;
  std::string trace_path;    // "" = no trace
  bool takes_turns = false;  // on descriptor kTurnDescriptor
};

std::string to_json(const SampleRequest& request);
SampleRequest sample_request_from_json(const std::string& text);  // throws InputError

}  // namespace headroom
