#include "harness/machine/gpu_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace headroom {
namespace nvml {

// The few NVML declarations used here, copied from the reference guide because the toolkit may lack
// nvml.h.
using Device = struct DeviceHandle*;
using Result = int;
constexpr Result kSuccess = 0;
constexpr Result kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
constexpr unsigned long long kNotKnown = ~0ULL;

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id, compute_instance_id;
};

}  // namespace nvml

struct GpuMemory::Library {
  void* handle = nullptr;
  nvml::Result (*init)() = nullptr;
  nvml::Result (*shutdown)() = nullptr;
  nvml::Result (*count)(unsigned int*) = nullptr;
  nvml::Result (*device)(unsigned int, nvml::Device*) = nullptr;
  nvml::Result (*memory)(nvml::Device, nvml::MemoryInfo*) = nullptr;
  nvml::Result (*processes)(nvml::Device, unsigned int*, nvml::ProcessInfo*) = nullptr;
  std::vector<nvml::Device> devices;
  bool started = false;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (started) shutdown();
    if (handle != nullptr) ::dlclose(handle);
  }

  template <typename Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
  }

  // Loads NVML. Returns why it failed; "" on success.
  std::string load() {
    handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return "NVML is not available (libnvidia-ml.so.1 cannot be loaded)";
    if (!find(init, "nvmlInit_v2") || !find(shutdown, "nvmlShutdown") ||
        !find(count, "nvmlDeviceGetCount_v2") || !find(device, "nvmlDeviceGetHandleByIndex_v2") ||
        !find(memory, "nvmlDeviceGetMemoryInfo"))
      return "this NVML lacks a function of version 2";
    if (!find(processes, "nvmlDeviceGetComputeRunningProcesses_v3"))
      find(processes, "nvmlDeviceGetComputeRunningProcesses_v2");
    if (const nvml::Result result = init(); result != nvml::kSuccess)
      return fmt::format("NVML cannot start (error {})", result);
    started = true;
    unsigned int number = 0;
    if (count(&number) != nvml::kSuccess || number == 0) return "NVML sees no device";
    for (unsigned int i = 0; i < number; ++i) {
      nvml::Device one = nullptr;
      if (device(i, &one) == nvml::kSuccess) devices.push_back(one);
    }
    return devices.empty() ? "NVML denies access to its devices" : "";
  }

  std::vector<nvml::ProcessInfo> processes_on(nvml::Device one) const {
    std::vector<nvml::ProcessInfo> infos(32);
    if (processes == nullptr) return {};
    for (;;) {
      auto size = static_cast<unsigned int>(infos.size());
      const nvml::Result result = processes(one, &size, infos.data());
      if (result == nvml::kTooSmall) {
        infos.resize(2 * std::max<std::size_t>(size, infos.size()));
        continue;
      }
      infos.resize(result == nvml::kSuccess ? size : 0);
      return infos;
    }
  }
};

GpuMemory::GpuMemory(std::unique_ptr<Library> library) : library_(std::move(library)) {}
GpuMemory::~GpuMemory() = default;

std::unique_ptr<GpuMemory> GpuMemory::open(std::string& why_not) {
  auto library = std::make_unique<Library>();
  why_not = library->load();
  if (!why_not.empty()) return nullptr;
  return std::unique_ptr<GpuMemory>(new GpuMemory(std::move(library)));
}

std::size_t GpuMemory::devices() const { return library_->devices.size(); }

GpuUsage GpuMemory::read(const std::vector<pid_t>& processes) const {
  GpuUsage usage;
  Bytes ours = 0;
  bool named = false;
  for (const nvml::Device device : library_->devices) {
    nvml::MemoryInfo memory{};
    if (library_->memory(device, &memory) == nvml::kSuccess) {
      usage.used += memory.used;
      usage.free += memory.free;
    }
    for (const nvml::ProcessInfo& process : library_->processes_on(device)) {
      if (std::find(processes.begin(), processes.end(), static_cast<pid_t>(process.pid)) ==
              processes.end() ||
          process.used_gpu_memory == nvml::kNotKnown)
        continue;
      named = true;
      ours += process.used_gpu_memory;
    }
  }
  if (named) usage.by_processes = ours;
  return usage;
}

}  // namespace headroom
