#include "harness/runner/provenance.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zstd.h>
#include <dnnl.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "harness/base/build_info.h"
#include "harness/base/commit.h"
#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/sha256.h"
#include "harness/base/subprocess.h"
#include "harness/device/traits.h"
#include "harness/machine/probe.h"
#include "harness/plan/scenario.h"
#include "harness/runner/sample_process.h"
#include "harness/workload/workload.h"

extern char** environ;

namespace headroom {
namespace {

// The value after "key : value" or "key=value" in a file of such lines. A file that is there but
// cannot be read is an error: with another value, the run could not be resumed.
std::optional<std::string> entry_of(const char* file, std::string_view key, char separator) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  std::istringstream stream(read_file(file));
  for (std::string line; std::getline(stream, line);) {
    const std::size_t at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t end = line.find_last_not_of(" \t\"");
    return begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
  }
  return std::nullopt;
}

// "always [madvise] never" → "madvise".
std::optional<std::string> chosen(const std::optional<std::string>& line) {
  if (!line) return std::nullopt;
  const std::size_t begin = line->find('[');
  const std::size_t end = line->find(']');
  if (begin == std::string::npos || end == std::string::npos) return line;
  return line->substr(begin + 1, end - begin - 1);
}

std::optional<double> load_average() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return std::nullopt;
  return load;
}

// Name and driver of the first GPU, as reported by the driver's own tool.
std::pair<std::optional<std::string>, std::optional<std::string>> gpu_and_driver() {
  try {
    const SubprocessResult said = run_subprocess(
        {.argv = {"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"},
         .timeout = std::chrono::seconds{20}});
    const std::string line = said.output.substr(0, said.output.find('\n'));
    const std::size_t comma = line.rfind(", ");
    if (said.ending != Ending::exited || said.code != 0 || comma == std::string::npos) return {};
    return {line.substr(0, comma), line.substr(comma + 2)};
  } catch (const DeviceError&) {
    return {};  // without the tool there is no such GPU
  }
}

std::string hashed_hostname() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return sha256(name.data()).substr(0, 16);
}

}  // namespace

BuildInfo build_info() {
  constexpr std::string_view kDirty = "-dirty";
  std::string commit = kCommit;
  const bool dirty = commit.ends_with(kDirty);
  if (dirty) commit.resize(commit.size() - kDirty.size());
  BuildInfo info{.version = kVersion,
                 .commit = std::nullopt,
                 .dirty = std::nullopt,
                 .compiler = kCompiler,
                 .build_type = kBuildType,
                 .flags = kFlags,
                 .cuda = kCuda,
                 .executable_sha256 = sha256_of_file(this_executable())};
  if (!commit.empty()) {
    info.commit = commit;
    info.dirty = dirty;
  }
  return info;
}

std::map<std::string, std::string> library_versions() {
  const dnnl_version_t* dnnl = dnnl::version();
  return {
      {"glibc", gnu_get_libc_version()},
      {"libcrypto", OpenSSL_version(OPENSSL_VERSION_STRING)},
      {"onednn", fmt::format("{}.{}.{} ({})", dnnl->major, dnnl->minor, dnnl->patch, dnnl->hash)},
      {"openmp", fmt::format("{}", _OPENMP)},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"zstd", ZSTD_versionString()}};
}

MachineInfo machine_info() {
  utsname system{};
  ::uname(&system);
  const auto [gpu, driver] = gpu_and_driver();
  const auto pages = static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES));
  return {.hostname_hash = hashed_hostname(),
          .cpu = entry_of("/proc/cpuinfo", "model name", ':').value_or(system.machine),
          .cores = usable_cores(),
          .governor = read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
          .ram_bytes = pages * static_cast<Bytes>(::sysconf(_SC_PAGESIZE)),
          .kernel = fmt::format("{} {}", system.sysname, system.release),
          .os = entry_of("/etc/os-release", "PRETTY_NAME", '=').value_or(system.sysname),
          .transparent_hugepages =
              chosen(read_first_line("/sys/kernel/mm/transparent_hugepage/enabled")),
          .load_average_1m = load_average(),
          .gpu = gpu,
          .gpu_driver = driver};
}

std::map<std::string, std::string> relevant_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    for (const std::string_view prefix :
         {"OMP_", "KMP_", "GOMP_", "ONEDNN_", "DNNL_", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD",
          "CUDA_VISIBLE_DEVICES", "CUBLAS_", "CUDNN_"})
      if (text.starts_with(prefix))
        found[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return found;
}

void add_provenance(RunInfo& info) {
  info.headroom = build_info();
  info.libraries = library_versions();
  info.machine = machine_info();
  info.environment = relevant_environment();
  const MachineInfo& machine = info.machine;
  std::string all = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n", machine.hostname_hash, machine.cpu, machine.cores,
      machine.ram_bytes, machine.kernel, machine.os, machine.transparent_hugepages.value_or(""),
      machine.gpu.value_or("") + machine.gpu_driver.value_or("") + machine.governor.value_or(""));
  for (const auto* list : {&info.libraries, &info.environment})
    for (const auto& [name, value] : *list) all += fmt::format("{}={}\n", name, value);
  all += info.headroom.compiler + info.headroom.build_type + info.headroom.flags;
  info.environment_id = sha256(all).substr(0, 16);
}

std::vector<DataFile> training_data(const std::vector<Experiment>& experiments) {
  std::set<std::filesystem::path> files;
  for (const Experiment& experiment : experiments)
    for (const Arm& arm : experiment.arms) {
      const bool reads_data = trains(arm.cell) && traits_of(arm.cell.device).computes;
      if (!reads_data || unsupported_sample(arm.cell)) continue;
      for (const auto& file : make_workload(arm.cell.workload)->data_files()) files.insert(file);
    }
  std::vector<DataFile> described;
  for (const auto& file : files) described.push_back(describe_data_file(file, kTrainingData));
  return described;
}

DataFile describe_data_file(const std::filesystem::path& file, const std::string& origin) {
  return {.path = file.string(),
          .sha256 = sha256_of_file(file),
          .bytes = std::filesystem::file_size(file),
          .origin = origin};
}

}  // namespace headroom
