// The findings of headroom doctor about a machine, for its text and its JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/units.h"
#include "harness/results/run_info.h"

namespace headroom {

struct DeviceFound {
  std::string name;
  std::string summary;
  std::string why_not;  // why it cannot be used, and what is missing; "" if it is ready
};

struct CudaModuleFound {
  std::filesystem::path path;
  std::vector<std::pair<std::string, std::string>> details;  // about GPU, driver and libraries
};

struct NvmlFound {
  std::size_t devices = 0;
  Bytes free = 0;  // of all of them
};

struct FrameworkFound {
  std::string python;  // the interpreter that imports it; "" if none does
  bool own_environment = false;
};

struct DoctorFindings {
  MachineInfo machine;
  std::string instruction_set;
  double fp32_gflops = 0;  // measured now, on all cores
  Bytes available = 0;     // of the machine's memory
  BuildInfo headroom;
  std::map<std::string, std::string> libraries;
  std::filesystem::path home;
  std::vector<DeviceFound> devices;
  std::optional<CudaModuleFound> cuda_module;
  std::vector<std::filesystem::path> cuda_module_places;
  std::optional<NvmlFound> nvml;
  std::string why_no_nvml;
  std::string report_python;  // "" if no interpreter has the modules for reports
  std::map<std::string, FrameworkFound> frameworks;
};

// Takes a second or two: it computes, and asks interpreters what they can import.
DoctorFindings examine();

}  // namespace headroom
