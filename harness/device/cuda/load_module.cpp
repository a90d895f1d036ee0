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

// Problems are written to result files, so they leave out this machine's directory names.
std::string not_found() {
  if (!kWhyNotBuilt.empty())
    return fmt::format(
        "this build has no CUDA module ({}); needs the CUDA toolkit 12.5 or newer with cuBLAS and "
        "cuDNN 9, nvcc on PATH, and a build configured with -Dcuda=enabled",
        kWhyNotBuilt);
  return fmt::format(
      "the CUDA module was not found; needs libheadroom_cuda.so beside the program (ninja builds "
      "it) or its path in {}; headroom doctor lists the places searched",
      kPathVariable);
}

std::string without_directory(std::string text, const std::filesystem::path& file) {
  const std::string whole = file.string();
  for (std::size_t at = text.find(whole); at != std::string::npos; at = text.find(whole))
    text.replace(at, whole.size(), file.filename().string());
  return text;
}

}  // namespace

std::vector<std::filesystem::path> cuda_module_places() {
  if (const char* path = std::getenv(kPathVariable); path != nullptr && *path != '\0')
    return {path};
  // A build never loads an installed module: the types that cross the interface must be the same.
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
    // RTLD_NODELETE: devices and their virtual functions outlive any handle.
    void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr)
      return {nullptr, place,
              fmt::format("the CUDA module does not load: {}; needs the CUDA runtime, cuBLAS and "
                          "cuDNN it was built with (LD_LIBRARY_PATH names their folder)",
                          without_directory(dlerror(), place))};
    const auto entry = reinterpret_cast<CudaEntryPoint>(dlsym(handle, kCudaEntryPoint));
    if (entry == nullptr)
      return {nullptr, place,
              fmt::format("{} is not a CUDA module of Headroom: it has no function {}",
                          place.filename().string(), kCudaEntryPoint)};
    const CudaModule* module = entry();
    if (module->version != HEADROOM_VERSION)
      return {nullptr, place,
              fmt::format("the CUDA module {} belongs to Headroom {}, this is {}; needs the module "
                          "of the same build",
                          place.filename().string(), module->version, HEADROOM_VERSION)};
    return {module, place, ""};
  }
  return {nullptr, {}, not_found()};
}

const LoadedCudaModule& cuda_module() {
  static const LoadedCudaModule loaded = load_cuda_module(cuda_module_places());
  return loaded;
}

}  // namespace headroom
