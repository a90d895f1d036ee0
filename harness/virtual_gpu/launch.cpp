#include "harness/virtual_gpu/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/home.h"
#include "harness/base/subprocess.h"
#include "harness/virtual_gpu/stand_ins/places.h"

namespace headroom::virtual_gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommonLibrary = "libheadroom_gpu.so";
constexpr const char* kAllocatorLibrary = "libheadroom_allocator.so";
constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::string_view kHome = "home = ";  // in pyvenv.cfg
constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

// The directory that has `library`: `built` in a build, else where the stand-ins are installed.
// LD_PRELOAD must be able to name it.
fs::path place_of(const char* library, const fs::path& built) {
  const fs::path program = this_executable().parent_path();
  const fs::path installed = (program / kInstalledStandIns).lexically_normal();
  for (const fs::path& place : {program / built, installed}) {
    if (!fs::exists(place / library)) continue;
    if (place.string().find_first_of(": ") != std::string::npos)
      throw InputError(fmt::format(
          "{}: LD_PRELOAD takes no path with a colon or a space; build Headroom elsewhere",
          place.string()));
    return place;
  }
  throw InputError(fmt::format("{} is neither in {} nor in {}; build it with: ninja -C build run",
                               library, (program / built).string(), installed.string()));
}

// XLA measures kernels and reads what they wrote, which is meaningless here. So it chooses kernels
// without measuring, and starts each one separately. XLA assembles compiled code with a program
// that it finds in a directory laid out like CUDA's.
std::string xla_flags(const fs::path& toolkit) {
  return fmt::format(
      "--xla_gpu_autotune_level=0 --xla_gpu_enable_command_buffer= --xla_gpu_cuda_data_dir={}",
      toolkit.string());
}

// Returns `value` followed by what the variable holds.
std::string prepended(const char* variable, const std::string& value, char separator) {
  const char* old = std::getenv(variable);
  return old == nullptr || *old == '\0' ? fmt::format("{}={}", variable, value)
                                        : fmt::format("{}={}{}{}", variable, value, separator, old);
}

// Lists all stand-ins except the one for `real`, a library that works without a GPU.
std::string preload(const fs::path& directory, const fs::path& real) {
  std::string libraries = (directory / kCommonLibrary).string();
  std::istringstream names(kStandInNames);
  for (std::string name; names >> name;)
    if (name != real.filename()) libraries += ":" + (directory / name).string();
  return libraries;
}

std::string describe(const CardDescription& card, int devices) {
  return fmt::format(
      "name={};memory={};context={};devices={};major={};minor={};multiprocessors={};"
      "shared_per_multiprocessor={};shared_per_block_optin={};threads_per_multiprocessor={};"
      "blocks_per_multiprocessor={};l2={};clock_khz={};memory_clock_khz={};memory_bus_bits={}",
      card.name, card.memory, card.context, devices, card.compute_major, card.compute_minor,
      card.multiprocessors, card.shared_per_multiprocessor, card.shared_per_block_optin,
      card.threads_per_multiprocessor, card.blocks_per_multiprocessor, card.l2_cache,
      card.clock_khz, card.memory_clock_khz, card.memory_bus_bits);
}

fs::path home() { return headroom_home() / "harness" / "virtual_gpu"; }

fs::path on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::error_code unreadable;
    if (fs::path file = fs::path(directory) / program; fs::exists(file, unreadable)) return file;
  }
  return {};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "0,1,2" for three devices.
std::string all_of(int devices) {
  std::vector<int> numbers(static_cast<std::size_t>(devices));
  std::iota(numbers.begin(), numbers.end(), 0);
  return fmt::format("{}", fmt::join(numbers, ","));
}

// Returns the directories that Python imports from: `site`, and those that its .pth files name.
std::vector<fs::path> import_places(const fs::path& site) {
  std::vector<fs::path> result = {site};
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(site, unreadable)) {
    if (entry.path().extension() != ".pth") continue;
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);)
      if (fs::is_directory(site / line, unreadable)) result.push_back(site / line);
  }
  return result;
}

// Returns one of the `files` of NVIDIA's wheels; "" if none is there.
fs::path wheel_file_below(const fs::path& prefix, const std::vector<const char*>& files) {
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", unreadable))
    for (const char* packages :
         {"site-packages", "dist-packages"})  // the latter on Debian and Ubuntu
      for (const fs::path& place : import_places(entry.path() / packages))
        for (const char* file : files)
          if (fs::path found = place / "nvidia" / file; fs::exists(found, unreadable)) return found;
  return {};
}

// Returns the Python installation whose packages a virtual environment has as well; "" if it has
// only its own.
fs::path base_of(const fs::path& environment) {
  std::ifstream settings(environment / "pyvenv.cfg");
  std::string home;
  bool has_packages_of_base = false;
  for (std::string line; std::getline(settings, line);) {
    if (line.starts_with(kHome)) home = line.substr(kHome.size());
    has_packages_of_base |= line == "include-system-site-packages = true";
  }
  return has_packages_of_base ? fs::path(home).parent_path() : fs::path();
}

// A virtual environment is located by the path under which its program is called, not by the target
// of a link, or by the variables that it sets when the program belongs to no environment.
std::vector<fs::path> environments_of(const std::string& program) {
  std::vector<fs::path> result;
  if (const fs::path file = on_path(program); !file.empty())
    result.push_back(fs::absolute(file).parent_path().parent_path());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string place = variable(name); !place.empty()) result.emplace_back(place);
  for (std::size_t own = result.size(), i = 0; i < own; ++i)
    if (fs::path base = base_of(result[i]); !base.empty()) result.push_back(base);
  // pip puts packages there that it installs for one user, and on Debian and Ubuntu those for all.
  if (const std::string user = variable("HOME"); !user.empty())
    result.push_back(fs::path(user) / ".local");
  result.emplace_back("/usr/local");
  return result;
}

fs::path wheel_file(const std::string& program, const std::vector<const char*>& files) {
  for (const fs::path& prefix : environments_of(program))
    if (fs::path file = wheel_file_below(prefix, files); !file.empty()) return file;
  return {};
}

// Returns a directory for what compilers keep between runs, such as which variant of a kernel was
// the fastest. A program on a real card must not find what they measured here. Where the user's
// cache cannot be written, it lies beside the records.
fs::path directory_for_compilers(const fs::path& records) {
  const fs::path cache = cache_directory() / "compiled";
  std::error_code failed;
  fs::create_directories(cache, failed);
  return failed || access(cache.c_str(), W_OK) != 0 ? records / "compiled" : cache;
}

}  // namespace

fs::path hook_directory() { return home() / "hook"; }

std::vector<std::string> environment_for_capture(const fs::path& records, int until_step) {
  return {
      prepended("PYTHONPATH", hook_directory().string(), ':'),
      "HEADROOM_GPU_RECORDS=" + records.string(),
      fmt::format("HEADROOM_GPU_UNTIL_STEP={}", until_step),
      "HEADROOM_GPU_CAPTURE=on",
      "KINETO_LOG_LEVEL=9",  // PyTorch's profiler, which records a CPU's memory, says nothing
  };
}

std::vector<std::string> environment_for_serving(const Serving& serving) {
  std::vector<std::string> result = {"HEADROOM_GPU_ONLY_FIGURES=on"};
  if (serving.allocator.empty()) return result;
  const std::string library = (place_of(kAllocatorLibrary, "capture") / kAllocatorLibrary).string();
  result.push_back("HEADROOM_ALLOCATOR=" + serving.allocator);
  result.push_back("HEADROOM_ALLOCATOR_LIBRARY=" + library);
  if (serving.host_capacity) {
    result.push_back(fmt::format("HEADROOM_ALLOCATOR_CAPACITY={}", *serving.host_capacity));
    result.push_back(prepended("LD_PRELOAD", library, ':'));
  }
  return result;
}

CardDescription description_of(const Card& card, Bytes memory, Bytes context) {
  return {.name = card.name,
          .memory = memory,
          .context = context,
          .compute_major = card.compute_major,
          .compute_minor = card.compute_minor,
          .multiprocessors = card.multiprocessors,
          .shared_per_multiprocessor = card.shared_per_multiprocessor,
          .shared_per_block_optin = card.shared_per_block_optin,
          .threads_per_multiprocessor = card.threads_per_multiprocessor,
          .blocks_per_multiprocessor = card.blocks_per_multiprocessor,
          .l2_cache = card.l2_cache,
          .clock_khz = card.clock_khz,
          .memory_clock_khz = card.memory_clock_khz,
          .memory_bus_bits = card.memory_bus_bits};
}

std::vector<std::string> environment_for(const Launch& launch) {
  const fs::path libraries =
      place_of(kCommonLibrary, fs::path("harness") / "virtual_gpu" / "stand_ins");
  // NVRTC's folder comes first, so that the user's own NVRTC is found. Other CUDA libraries in it
  // are not loaded, because their stand-ins are preloaded.
  const std::string library_path =
      launch.nvrtc.empty() ? libraries.string()
                           : launch.nvrtc.parent_path().string() + ":" + libraries.string();
  const fs::path compiled = directory_for_compilers(launch.records);
  std::vector<std::string> result = {
      "TORCHINDUCTOR_CACHE_DIR=" + (compiled / "torchinductor").string(),
      "TRITON_CACHE_DIR=" + (compiled / "triton").string(),
      prepended("LD_PRELOAD", preload(libraries, launch.nvrtc), ':'),
      prepended("LD_LIBRARY_PATH", library_path, ':'),
      prepended("PYTHONPATH", hook_directory().string(), ':'),
      prepended("PATH", (home() / "programs").string(), ':'),
      "HEADROOM_GPU_XLA_FLAGS=" + xla_flags(home() / "toolkit"),
      "TF_CUDNN_USE_AUTOTUNE=0",
      "HEADROOM_GPU_CARD=" + describe(launch.card, launch.devices),
      "HEADROOM_GPU_RECORDS=" + launch.records.string(),
      fmt::format("HEADROOM_GPU_UNTIL_STEP={}", launch.until_step),
      fmt::format("HEADROOM_GPU_MASK_SHARE={}", launch.mask_share),
  };
  if (launch.world > 0) {
    const std::string world = std::to_string(launch.world);
    // The variables that torchrun sets for each process. No process listens at the address.
    for (const std::string& variable :
         {"HEADROOM_GPU_WORLD=" + world, "WORLD_SIZE=" + world, std::string("RANK=0"),
          std::string("LOCAL_RANK=0"), fmt::format("LOCAL_WORLD_SIZE={}", launch.devices),
          std::string("MASTER_ADDR=localhost"), std::string("MASTER_PORT=29500")})
      result.push_back(variable);
  }
  if (!launch.cudnn.empty()) result.push_back("HEADROOM_GPU_CUDNN=" + launch.cudnn.string());
  if (!launch.nvrtc.empty()) result.emplace_back("HEADROOM_GPU_NVRTC=on");
  // A list in the user's shell is about the machine's own GPUs. The program may set one of its own.
  if (std::getenv(kVisible) != nullptr)
    result.push_back(fmt::format("{}={}", kVisible, all_of(launch.devices)));
  return result;
}

std::vector<std::string> environment_on_host(const fs::path& records, const Serving& serving) {
  const Card& any = cards().front();
  std::vector<std::string> result = environment_for(
      {.card = description_of(any, any.capacity), .records = records, .cudnn = {}, .nvrtc = {}});
  std::erase_if(result, [](const std::string& entry) { return entry.starts_with(kVisible); });
  result.push_back(kVisible + std::string("="));
  result.emplace_back("HEADROOM_GPU_CAPTURE=on");
  const auto stand_ins = std::find_if(result.begin(), result.end(), [](const std::string& entry) {
    return entry.starts_with(kPreload);
  });
  std::vector<std::string> others;
  for (const std::string& entry : environment_for_serving(serving))
    if (entry.starts_with(kPreload))
      *stand_ins += ":" + entry.substr(kPreload.size());
    else
      others.push_back(entry);
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

fs::path find_cudnn(const std::string& program) {
  if (fs::path wheel = wheel_file(program, {"cudnn/lib/libcudnn.so.9"}); !wheel.empty())
    return wheel;
  // The packages and containers of NVIDIA put it into places of the system, conda beside Python.
  std::vector<fs::path> places = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                                  "/usr/local/cuda/lib64"};
  for (const fs::path& prefix : environments_of(program))
    places.insert(places.begin(), prefix / "lib");
  for (const fs::path& place : places) {
    std::error_code unreadable;
    if (fs::path file = place / "libcudnn.so.9"; fs::exists(file, unreadable)) return file;
  }
  return {};
}

fs::path find_nvrtc(const std::string& program) {
  return wheel_file(program, {"cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"});
}

bool has_real_gpu() {
  std::error_code unreadable;
  const fs::directory_iterator gpus("/proc/driver/nvidia/gpus", unreadable);
  return !unreadable && gpus != fs::directory_iterator();
}

}  // namespace headroom::virtual_gpu
