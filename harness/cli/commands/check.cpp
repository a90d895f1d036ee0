// headroom check: whether a device computes the same as the host. Each check runs in a process of
// its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/subprocess.h"
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

constexpr std::chrono::minutes kTimeout{3};  // for one check, which takes seconds

void print(const std::string& device, const DeviceFinding& finding) {
  const char* word = finding.outcome == Outcome::passed    ? "pass"
                     : finding.outcome == Outcome::skipped ? "skip"
                                                           : "FAIL";
  out::print("{}  {} {}{}{}\n", word, device, finding.what, finding.why.empty() ? "" : ": ",
             finding.why);
  std::fflush(stdout);  // printed even if the next check hangs the machine
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

// Parses the JSON that a child process printed after it ran one check.
DeviceFinding read_finding(const std::string& what, const SubprocessResult& child) {
  if (child.ending == Ending::timed_out)
    return {what, Outcome::failed,
            fmt::format("did not end within {} s and was killed",
                        std::chrono::seconds(kTimeout).count())};
  if (child.ending == Ending::signalled)
    return {what, Outcome::failed,
            fmt::format("ended by {}; {}", signal_name(child.code), child.errors)};
  const std::size_t begin = child.output.find('{');  // libraries may print before it
  const Json json = begin == std::string::npos
                        ? Json()
                        : Json::parse(child.output.substr(begin), nullptr, /*exceptions=*/false);
  if (!json.is_object() || !json.contains("findings") || json["findings"].size() != 1)
    return {what, Outcome::failed, fmt::format("exit status {}; {}", child.code, child.errors)};
  const Json& finding = json["findings"][0];
  const std::string word = finding["outcome"];
  return {what,
          word == "passed"    ? Outcome::passed
          : word == "skipped" ? Outcome::skipped
                              : Outcome::failed,
          finding["why"].is_string() ? finding["why"].get<std::string>() : ""};
}

DeviceFinding check_in_child(const std::string& device, std::size_t number,
                             const DeviceCheck& check) {
  return read_finding(
      check.what, run_subprocess({.argv = {this_executable().string(), "check", device, "--only",
                                           std::to_string(number), "--json"},
                                  .timeout = kTimeout}));
}

std::vector<DeviceFinding> findings_of(const Spec& device, const CheckOptions& options) {
  const std::vector<DeviceCheck> checks = device_checks(device);
  if (options.only > checks.size())
    throw InputError(
        fmt::format("--only {}: there are {} checks of a device", options.only, checks.size()));
  std::vector<DeviceFinding> findings;
  for (std::size_t number = 1; number <= checks.size(); ++number) {
    if (options.only != 0 && options.only != number) continue;
    const DeviceCheck& check = checks[number - 1];
    findings.push_back(options.only != 0 ? run_check(check)
                                         : check_in_child(device.to_string(), number, check));
    if (!options.json) print(device.to_string(), findings.back());
  }
  return findings;
}

}  // namespace

ExitCode check_command(const CheckOptions& options) {
  const Spec device = Spec::parse(options.device);
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(device.name());
  if (const std::string reason = kind.unavailable(); !reason.empty()) {
    if (options.json)
      print_json(to_json(device.to_string(), reason, {}));
    else
      out::print("{} is not available here, so there is nothing to check: {}\n", device.to_string(),
                 reason);
    return ExitCode::ok;
  }
  if (!kind.traits.computes)
    throw InputError(fmt::format(
        "{} computes nothing, so there is nothing to check; name host or cuda", kind.name));
  const std::vector<DeviceFinding> findings = findings_of(device, options);
  if (options.json) print_json(to_json(device.to_string(), "", findings));
  const bool failed = std::any_of(findings.begin(), findings.end(), [](const auto& finding) {
    return finding.outcome == Outcome::failed;
  });
  return failed ? ExitCode::not_calibrated : ExitCode::ok;
}

}  // namespace headroom
