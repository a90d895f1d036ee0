// Checks that a device stores bytes correctly and computes the same as the host. To be run before
// the first use of a new device: figures from a device that fails are worthless.
#pragma once

#include <functional>
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

struct DeviceCheck {
  std::string what;
  std::function<void()> run;  // throws Error when the device fails, NotSupported to skip
};

// The checks from the cheapest to the most expensive. `device` must be one that computes and is
// available here. An error of a GPU can end all later calls of its process, so each check belongs
// in a process of its own.
std::vector<DeviceCheck> device_checks(const Spec& device);
DeviceFinding run_check(const DeviceCheck& check);

}  // namespace headroom
