// headroom check: whether a device computes the same as the host.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/base/registry.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/device/device.h"
#include "harness/results/schema_check.h"
#include "harness/runner/device_check.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = DeviceFinding::Outcome;

void print(const std::string& device, const DeviceFinding& finding) {
  const char* word = finding.outcome == Outcome::passed    ? "pass"
                     : finding.outcome == Outcome::skipped ? "skip"
                                                           : "FAIL";
  out::print("{}  {} {}{}{}\n", word, device, finding.what, finding.why.empty() ? "" : ": ",
             finding.why);
}

Json to_json(const DeviceFinding& finding) {
  const char* word = finding.outcome == Outcome::passed    ? "passed"
                     : finding.outcome == Outcome::skipped ? "skipped"
                                                           : "failed";
  return {{"what", finding.what},
          {"outcome", word},
          {"why", finding.why.empty() ? Json() : Json(finding.why)}};
}

// Follows reports/schema.json. A non-empty `reason` says why nothing was checked.
Json to_json(const std::string& device, const std::string& reason,
             const std::vector<DeviceFinding>& findings) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "device_check"},
               {"device", device},
               {"checked", reason.empty()},
               {"reason", reason.empty() ? Json() : Json(reason)},
               {"findings", Json::array()}};
  for (const DeviceFinding& finding : findings) json["findings"].push_back(to_json(finding));
  return json;
}

}  // namespace

ExitCode check_command(const CheckOptions& options) {
  const Spec device = Spec::parse(options.device);
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(device.name());
  if (const std::string reason = kind.unavailable(); !reason.empty()) {
    if (options.json)
      print_json(to_json(device.to_string(), reason, {}));
    else
      out::print("{} is not here, so there is nothing to check: {}\n", device.to_string(), reason);
    return ExitCode::ok;
  }
  if (!kind.traits.computes)
    throw InputError(fmt::format(
        "{} computes nothing, so there is nothing to check; name host or cuda", kind.name));
  const std::vector<DeviceFinding> findings = check_device(device);
  if (options.json)
    print_json(to_json(device.to_string(), "", findings));
  else
    for (const DeviceFinding& finding : findings) print(device.to_string(), finding);
  const bool failed = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.outcome == Outcome::failed;
  });
  return failed ? ExitCode::not_calibrated : ExitCode::ok;
}

}  // namespace headroom
