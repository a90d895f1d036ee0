// headroom doctor: what this machine can run, and what is missing for the rest.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/cli/commands/commands.h"
#include "harness/cli/doctor_findings.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/results/json/provenance_json.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

void say(std::string_view what, const std::string& text) {
  out::print("  {:<18} {}\n", what, text);
}

void describe_machine(const DoctorFindings& found) {
  const MachineInfo& machine = found.machine;
  out::print("Machine\n");
  say("processor",
      fmt::format("{}, {} cores, {}", machine.cpu, machine.cores, found.instruction_set));
  say("speed now", fmt::format("{:.0f} GFLOP/s fp32 on all cores", found.fp32_gflops));
  say("memory", fmt::format("{}, of which {} free", format_bytes(machine.ram_bytes),
                            format_bytes(found.available)));
  const std::string huge = machine.transparent_hugepages.value_or("not in this kernel");
  say("huge pages", huge + (huge == "never" ? ": device memory will be slow to commit; as root: "
                                              "echo madvise > "
                                              "/sys/kernel/mm/transparent_hugepage/enabled"
                                            : ""));
  say("system", fmt::format("{}, {}", machine.os, machine.kernel));
  say("GPU", machine.gpu ? fmt::format("{}, driver {}", *machine.gpu,
                                       machine.gpu_driver.value_or("unknown"))
                         : "none visible to a driver on this machine");
}

void describe_program(const DoctorFindings& found) {
  const BuildInfo& build = found.headroom;
  out::print("Program\n");
  say("version", fmt::format("{}, {}{}", build.version,
                             build.commit ? "commit " + build.commit->substr(0, 12)
                                          : std::string("built outside a checkout"),
                             build.dirty.value_or(false) ? " with changes" : ""));
  say("compiler", fmt::format("{}, {}", build.compiler, build.build_type));
  for (const auto& [name, version] : found.libraries) say(name, version);
  say("files", found.home.string());
}

void describe_devices(const DoctorFindings& found) {
  out::print("Devices\n");
  for (const DeviceFound& device : found.devices)
    say(device.name, device.why_not.empty() ? "ready: " + device.summary
                                            : "not available here: " + device.why_not);
  if (found.cuda_module) {
    for (const auto& [what, is] : found.cuda_module->details)
      say("", fmt::format("{}: {}", what, is));
    say("", "module: " + found.cuda_module->path.string());
  }
  say("", found.nvml ? fmt::format("NVML: {} GPU(s), {} free", found.nvml->devices,
                                   format_bytes(found.nvml->free))
                     : fmt::format("NVML: {}; it comes with the NVIDIA driver, and without it the "
                                   "memory of the CUDA context is not counted",
                                   found.why_no_nvml));
  if (!found.cuda_module)
    for (const auto& place : found.cuda_module_places) say("", "looked for: " + place.string());
}

void describe_reports(const DoctorFindings& found) {
  out::print("Reports\n");
  say("python", found.report_python.empty()
                    ? "missing: apt install python3-jinja2 python3-jsonschema python3-matplotlib "
                      "python3-zstandard; runs work, their reports can be written later"
                    : found.report_python);
  for (const auto& [framework, is] : found.frameworks)
    say(framework, is.own_environment  ? "in an environment of its own, " + is.python
                   : is.python.empty() ? "not installed (optional; no suite needs it)"
                                       : "installed");
}

Json string_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Follows reports/schema.json.
Json to_json(const DoctorFindings& found) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "doctor"},
               {"machine", value_to_json(found.machine)},
               {"instruction_set", found.instruction_set},
               {"probe_gflops", number_or_null(found.fp32_gflops)},
               {"available_bytes", found.available},
               {"headroom", value_to_json(found.headroom)},
               {"libraries", found.libraries},
               {"files", found.home.string()},
               {"devices", Json::array()},
               {"cuda_module", nullptr},
               {"cuda_module_places", Json::array()},
               {"nvml", nullptr},
               {"why_no_nvml", string_or_null(found.why_no_nvml)},
               {"report_python", string_or_null(found.report_python)},
               {"frameworks", Json::object()}};
  for (const DeviceFound& device : found.devices)
    json["devices"].push_back({{"name", device.name},
                               {"summary", device.summary},
                               {"ready", device.why_not.empty()},
                               {"reason", string_or_null(device.why_not)}});
  if (found.cuda_module) {
    Json details = Json::object();
    for (const auto& [what, is] : found.cuda_module->details) details[what] = is;
    json["cuda_module"] = {{"path", found.cuda_module->path.string()}, {"details", details}};
  }
  for (const auto& place : found.cuda_module_places)
    json["cuda_module_places"].push_back(place.string());
  if (found.nvml)
    json["nvml"] = {{"devices", found.nvml->devices}, {"free_bytes", found.nvml->free}};
  for (const auto& [framework, is] : found.frameworks)
    json["frameworks"][framework] = string_or_null(is.python);
  return json;
}

}  // namespace

ExitCode doctor_command(const DoctorOptions& options) {
  const DoctorFindings found = examine();
  if (options.json) {
    print_json(to_json(found));
    return ExitCode::ok;
  }
  describe_machine(found);
  describe_program(found);
  describe_devices(found);
  describe_reports(found);
  return ExitCode::ok;
}

}  // namespace headroom
