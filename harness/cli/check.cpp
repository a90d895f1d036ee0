// headroom check: does a device do what the host does?
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/registry.h"
#include "harness/cli/commands.h"
#include "harness/device/device.h"
#include "harness/run/device_check.h"

namespace headroom {

ExitCode check_command(const CheckOptions& options) {
  const Spec device = Spec::parse(options.device);
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(device.name());
  if (const std::string reason = kind.unavailable(); !reason.empty()) {
    fmt::print("{} is not here, so there is nothing to check: {}\n", device.to_string(), reason);
    return ExitCode::ok;
  }
  if (device.name() == "meta")
    throw InputError("meta computes nothing, so there is nothing to check; name host or cuda");
  using Outcome = DeviceFinding::Outcome;
  bool failed = false;
  for (const DeviceFinding& finding : check_device(device)) {
    const char* word = finding.outcome == Outcome::passed    ? "pass"
                       : finding.outcome == Outcome::skipped ? "skip"
                                                             : "FAIL";
    fmt::print("{}  {} {}{}{}\n", word, device.to_string(), finding.what,
               finding.why.empty() ? "" : ": ", finding.why);
    failed = failed || finding.outcome == Outcome::failed;
  }
  return failed ? ExitCode::not_calibrated : ExitCode::ok;
}

}  // namespace headroom
