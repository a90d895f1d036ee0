// The error types, with the exit code that main() gives each, and Reason, which is not an error.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/base/units.h"

namespace headroom {

enum class ExitCode : int {
  ok = 0,
  usage = 2,             // bad flag, bad file, bad value
  does_not_fit = 3,      // plan: the problem fits under no allocator
  nothing_selected = 4,  // the filters left no cell
  regression = 10,
  verdict_changed = 11,
  not_calibrated = 12,
  over_budget = 13,  // watch --budget: the process tree exceeded its budget
  leak_found = 14,   // watch and leaks, with --fail-on leak
  internal = 70,
  interrupted = 130,  // Ctrl-C; the run can be resumed
};

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual ExitCode exit_code() const { return ExitCode::internal; }
};

// An error that the user can fix. The message names the place and the fix.
class InputError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::usage; }
};

// The combination is valid, but this device or build cannot run it. A sample that ends with this
// error has status "unsupported" and records the reason.
class NotSupported : public InputError {
 public:
  using InputError::InputError;
};

// An error reported by the operating system, a driver or a library.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// Ctrl-C arrived during work that leaves no partial state behind.
class Interrupted : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const override { return ExitCode::interrupted; }
};

// Running out of memory is also a result: the sample has status "oom" and carries this report.
struct OutOfMemoryReport {
  Bytes requested_bytes = 0;     // size of the failing request
  Bytes capacity_bytes = 0;      // capacity of the device memory
  Bytes reserved_bytes = 0;      // held by the allocator at the failure
  Bytes allocated_bytes = 0;     // in blocks in use
  Bytes free_bytes = 0;          // reserved but not in use
  Bytes largest_free_bytes = 0;  // largest hole in reserved memory
  std::string allocator;         // the allocator strategy that failed
};

class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryReport report);
  // For a driver or library that ran out of memory: `why` names it, and all figures are 0.
  explicit OutOfMemory(const std::string& why);
  const OutOfMemoryReport& report() const { return report_; }

 private:
  OutOfMemoryReport report_;
};

// Why something is not as it should be; absent if it is.
using Reason = std::optional<std::string>;

inline Reason unless(bool good, std::string why) {
  return good ? Reason() : Reason(std::move(why));
}

}  // namespace headroom
