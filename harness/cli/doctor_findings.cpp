#include "harness/cli/doctor_findings.h"

#include <dnnl.hpp>

#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/cli/python.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/device.h"
#include "harness/machine/gpu_memory.h"
#include "harness/machine/probe.h"
#include "harness/machine/process_memory.h"
#include "harness/runner/provenance.h"

namespace headroom {
namespace {

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

std::vector<DeviceFound> devices() {
  std::vector<DeviceFound> found;
  for (const auto& [name, kind] : Registry<DeviceKind>::instance().all())
    found.push_back({.name = name,
                     .summary = kind.summary,
                     .why_not = kind.unavailable ? kind.unavailable() : ""});
  return found;
}

std::optional<CudaModuleFound> loaded_cuda_module() {
  const LoadedCudaModule& loaded = cuda_module();
  if (loaded.module == nullptr) return std::nullopt;
  return CudaModuleFound{.path = loaded.path, .details = loaded.module->describe()};
}

FrameworkFound find_framework(const std::string& framework, const std::string& interpreter) {
  const std::filesystem::path own = environment_python(framework);
  if (std::filesystem::exists(own)) return {.python = own.string(), .own_environment = true};
  return {.python = missing_modules(interpreter, {framework}).empty() ? interpreter : ""};
}

}  // namespace

DoctorFindings examine() {
  DoctorFindings found{.machine = machine_info(),
                       .instruction_set = instruction_set(),
                       .available = available_memory(),
                       .headroom = build_info(),
                       .libraries = library_versions(),
                       .home = headroom_home(),
                       .devices = devices(),
                       .cuda_module = loaded_cuda_module(),
                       .cuda_module_places = cuda_module_places(),
                       .nvml = std::nullopt,
                       .why_no_nvml = "",
                       .report_python = find_python(report_modules()),
                       .frameworks = {}};
  found.fp32_gflops = probe_gflops(found.machine.cores);
  if (const auto nvml = GpuMemory::open(found.why_no_nvml))
    found.nvml = {.devices = nvml->devices(), .free = nvml->read({}).free};
  const std::string interpreter =
      found.report_python.empty() ? "/usr/bin/python3" : found.report_python;
  for (const std::string framework : {"torch", "tensorflow", "jax"})
    found.frameworks[framework] = find_framework(framework, interpreter);
  return found;
}

}  // namespace headroom
