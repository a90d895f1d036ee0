// What can go wrong, and the exit code each kind leads to. Caught once, in main.
#pragma once

#include <stdexcept>
#include <string>

#include "harness/base/units.h"

namespace headroom {

enum class ExitCode : int {
  ok = 0,
  usage = 2,             // bad flag, bad file, bad value
  does_not_fit = 3,      // plan: under no allocator
  nothing_selected = 4,  // filters left no cell
  regression = 10,
  verdict_changed = 11,
  not_calibrated = 12,
  over_budget = 13,  // watch --budget: the process tree passed it
  leak_found = 14,   // watch and leaks, with --fail-on leak
  internal = 70,
  interrupted = 130,  // Ctrl-C; the run can be resumed
};

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual ExitCode exit_code() const { return ExitCode::internal; }
};

// The user can mend it: the message names the place and the mend.
class InputError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::usage; }
};

// The combination is sound, but this device or build cannot run it: a sample that ends here has
// status "unsupported" and says why.
class NotSupported : public InputError {
 public:
  using InputError::InputError;
};

// The operating system, a driver or a library refused.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// Ctrl-C, while something ran that leaves nothing half done.
class Interrupted : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::interrupted; }
};

// A result as much as an error: a sample that ends here has status "oom" and carries this report.
struct OutOfMemoryReport {
  Bytes requested_bytes = 0;     // what the failing request asked for
  Bytes capacity_bytes = 0;      // of the device memory
  Bytes reserved_bytes = 0;      // held by the allocator when it failed
  Bytes allocated_bytes = 0;     // in blocks in use
  Bytes free_bytes = 0;          // reserved and not in use
  Bytes largest_free_bytes = 0;  // largest hole inside reserved memory
  std::string allocator;         // the strategy that gave up
};

class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryReport report);
  const OutOfMemoryReport& report() const { return report_; }

 private:
  OutOfMemoryReport report_;
};

}  // namespace headroom
