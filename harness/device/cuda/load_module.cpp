#include "harness/device/cuda/load_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "harness/device/cuda/cuda_build.h"

namespace headroom {
namespace {

constexpr const char* kPathVariable = "HEADROOM_CUDA_MODULE";
constexpr std::string_view kWhyNotBuilt = HEADROOM_WHY_NO_CUDA;

std::string not_found(const std::vector<std::filesystem::path>& places) {
  if (!kWhyNotBuilt.empty())
    return fmt::format(
        "this build has no CUDA module ({}); needs the CUDA toolkit 12.5 or newer with cuBLAS and "
        "cuDNN 9, nvcc on PATH, and a build configured with -Dcuda=enabled",
        kWhyNotBuilt);
  std::vector<std::string> names;
  for (const auto& place : places) names.push_back(place.string());
  return fmt::format(
      "the CUDA module was not found at {}; needs the file there (ninja builds it) or its path in "
      "{}",
      fmt::join(names, ", "), kPathVariable);
}

}  // namespace

std::vector<std::filesystem::path> cuda_module_places() {
  if (const char* path = std::getenv(kPathVariable); path != nullptr && *path != '\0')
    return {path};
  // A build is never mixed with an installation: the types that cross the seam must be the same.
  const std::filesystem::path build_root = HEADROOM_BUILD_ROOT;
  const std::filesystem::path installed = HEADROOM_CUDA_MODULE_INSTALLED;
  std::error_code unreadable;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  if (unreadable) return {installed};
  const auto inside_build = executable.lexically_relative(build_root);
  const bool built_here = !inside_build.empty() && *inside_build.begin() != "..";
  return {executable.parent_path() / installed.filename(),
          built_here ? build_root / HEADROOM_CUDA_MODULE_BUILT : installed};
}

LoadedCudaModule load_cuda_module(const std::vector<std::filesystem::path>& places) {
  for (const auto& place : places) {
    std::error_code unreadable;
    if (!std::filesystem::exists(place, unreadable)) continue;
    // NODELETE: devices and their virtual functions outlive any handle.
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr)
      return {nullptr, place,
              fmt::format("the CUDA module does not load: {}; needs the CUDA runtime, cuBLAS and "
                          "cuDNN it was built with (LD_LIBRARY_PATH names their folder)",
                          dlerror())};
    const auto entry = reinterpret_cast<CudaEntryPoint>(dlsym(handle, kCudaEntryPoint));
    if (entry == nullptr)
      return {nullptr, place,
              fmt::format("{} is no CUDA module of Headroom: it has no function {}", place.string(),
                          kCudaEntryPoint)};
    const CudaModule* module = entry();
    if (module->version != HEADROOM_VERSION)
      return {nullptr, place,
              fmt::format("the CUDA module {} belongs to Headroom {}, this is {}; needs the module "
                          "of the same build",
                          place.string(), module->version, HEADROOM_VERSION)};
    return {module, place, ""};
  }
  return {nullptr, {}, not_found(places)};
}

const LoadedCudaModule& cuda_module() {
  static const LoadedCudaModule loaded = load_cuda_module(cuda_module_places());
  return loaded;
}

}  // namespace headroom
