// headroom doctor: what this machine can run, and what the rest would need.
#include <fmt/format.h>
#include <dnnl.hpp>

#include <fstream>
#include <string>
#include <string_view>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/cli/commands.h"
#include "harness/cli/python.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/device.h"
#include "harness/run/probe.h"
#include "harness/run/provenance.h"
#include "harness/watch/gpu_memory.h"

namespace headroom {
namespace {

void say(std::string_view what, const std::string& text) {
  fmt::print("  {:<18} {}\n", what, text);
}

std::string instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE 4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 with VNNI";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 with VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 with bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AMX";
    default:
      return "another one";
  }
}

Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * kKiB;
  return 0;
}

void describe_machine() {
  const MachineInfo machine = machine_info();
  fmt::print("Machine\n");
  say("processor", fmt::format("{}, {} cores, {}", machine.cpu, machine.cores, instruction_set()));
  say("speed now", fmt::format("{:.0f} GFLOP/s fp32 on all cores", probe_gflops(machine.cores)));
  say("memory", fmt::format("{}, of which {} free", format_bytes(machine.ram_bytes),
                            format_bytes(available_memory())));
  const std::string huge = machine.transparent_hugepages.value_or("not in this kernel");
  say("huge pages", huge + (huge == "never" ? ": device memory will be slow to commit; as root: "
                                              "echo madvise > "
                                              "/sys/kernel/mm/transparent_hugepage/enabled"
                                            : ""));
  say("system", fmt::format("{}, {}", machine.os, machine.kernel));
  say("GPU", machine.gpu ? fmt::format("{}, driver {}", *machine.gpu,
                                       machine.gpu_driver.value_or("unknown"))
                         : "none that a driver on this machine shows");
}

void describe_program() {
  const BuildInfo build = build_info();
  fmt::print("Program\n");
  say("version", fmt::format("{}, {}{}", build.version,
                             build.commit ? "commit " + build.commit->substr(0, 12)
                                          : std::string("built outside a checkout"),
                             build.dirty.value_or(false) ? " with changes" : ""));
  say("compiler", fmt::format("{}, {}", build.compiler, build.build_type));
  for (const auto& [name, version] : library_versions()) say(name, version);
  say("files", headroom_home().string());
}

void describe_devices() {
  fmt::print("Devices\n");
  for (const auto& [name, kind] : Registry<DeviceKind>::instance().all()) {
    const std::string why = kind.unavailable ? kind.unavailable() : "";
    say(name, why.empty() ? "ready: " + kind.summary : "not here: " + why);
  }
  if (const CudaModule* module = cuda_module().module; module != nullptr) {
    for (const auto& [what, is] : module->describe()) say("", fmt::format("{}: {}", what, is));
    say("", "module: " + cuda_module().path.string());
  }
  std::string why_no_nvml;
  const auto nvml = GpuMemory::open(why_no_nvml);
  say("", nvml ? fmt::format("NVML: {} GPU(s), {} free", nvml->devices(),
                             format_bytes(nvml->read({}).free))
               : fmt::format("NVML: {}; it comes with the NVIDIA driver, and without it the device "
                             "rung lacks what the context takes",
                             why_no_nvml));
  if (cuda_module().module == nullptr)
    for (const auto& place : cuda_module_places()) say("", "looked for: " + place.string());
  if (!Registry<DeviceKind>::instance().contains("cuda"))
    say("cuda", fmt::format("not in this build (CUDA toolkit at build time: {}); its cells are "
                            "recorded as unsupported",
                            kCuda));
}

void describe_reports() {
  fmt::print("Reports\n");
  const std::string python = find_python(report_modules());
  say("python", python.empty() ? "missing: apt install python3-jinja2 python3-jsonschema "
                                 "python3-matplotlib python3-zstandard; runs work, their reports "
                                 "can be written later"
                               : python);
  const std::string interpreter = python.empty() ? "/usr/bin/python3" : python;
  for (const std::string framework : {"torch", "tensorflow", "jax"}) {
    const std::filesystem::path own = environment_python(framework);
    if (std::filesystem::exists(own))
      say(framework, "in an environment of its own, " + own.string());
    else
      say(framework, missing_modules(interpreter, {framework}).empty()
                         ? "installed"
                         : "not installed (optional; no suite needs it)");
  }
}

}  // namespace

ExitCode doctor_command(const DoctorOptions&) {
  describe_machine();
  describe_program();
  describe_devices();
  describe_reports();
  return ExitCode::ok;
}

}  // namespace headroom
