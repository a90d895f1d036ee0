// Checks that a device stores bytes correctly and computes the same as the host. To be run before
// the first use of a new device: figures from a device that fails are worthless.
#pragma once

#include <string>
#include <vector>

#include "harness/base/spec.h"

namespace headroom {

struct DeviceFinding {
  enum class Outcome { passed, failed, skipped };
  std::string what;  // "keeps 1000003 bytes"
  Outcome outcome = Outcome::passed;
  std::string why;  // for a failed check: what was expected, what was found, and at which line
};

// Runs the checks from the cheapest to the most expensive and stops after the first that fails.
// `device` must be one that computes and is available here.
std::vector<DeviceFinding> check_device(const Spec& device);

}  // namespace headroom
