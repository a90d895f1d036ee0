// Does a device keep the bytes it is given and compute what is computed without it? Asked before a
// run on a device that nobody has tried yet; a figure from one that fails is worth nothing.
#pragma once

#include <string>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

struct DeviceFinding {
  enum class Outcome { passed, failed, skipped };
  std::string what;  // "keeps 1000003 bytes"
  Outcome outcome = Outcome::passed;
  std::string why;  // of what did not pass: what was expected, what was found, and at which line
};

// From the cheapest to the dearest; ends with the first that fails. `device` must be one that
// computes and is available here.
std::vector<DeviceFinding> check_device(const Spec& device);

}  // namespace headroom
