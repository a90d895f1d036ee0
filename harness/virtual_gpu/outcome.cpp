#include "harness/virtual_gpu/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/error.h"
#include "harness/virtual_gpu/stand_ins/record.h"

namespace headroom::virtual_gpu {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Use>
void for_each_name(const NameList& list, Use use) {
  const std::uint32_t count = std::min<std::uint32_t>(list.count, kMaxNames);
  for (std::uint32_t i = 0; i < count; ++i)
    use(std::string(list.names[i], ::strnlen(list.names[i], kNameBytes)), list.calls[i].load());
}

// Returns whether the process used a device.
bool add_record(Outcome& outcome, const fs::path& file) {
  const std::string bytes = read_whole(file);
  if (bytes.size() < sizeof(Record)) throw InputError(fmt::format("{}: is cut off", file.string()));
  // The file is the memory of a Record, whose members are plain numbers.
  const auto* record = reinterpret_cast<const Record*>(bytes.data());
  if (record->magic != kRecordMagic)
    throw InputError(fmt::format("{}: is not a record of the stand-ins", file.string()));
  outcome.kernel_launches += record->kernel_launches;
  outcome.managed += record->managed_peak_bytes;
  bool used = false;
  for (int i = 0; i < kMaxDevices; ++i) {
    const DeviceRecord& device = record->devices[i];
    if (device.allocations == 0 && device.refusals == 0) continue;
    used = true;
    DeviceUse& use = outcome.devices[i];
    if (device.peak_bytes > use.peak) {
      use.peak = device.peak_bytes;
      use.processes = device.processes_at_peak;
    }
    use.refusals += device.refusals;
    if (device.refusals > 0) use.refused = device.refused_bytes;
  }
  for_each_name(record->sizes_not_known, [&](const std::string& name, std::uint64_t calls) {
    outcome.sizes_not_known[name] += calls;
  });
  for_each_name(record->sizes_estimated, [&](const std::string& name, std::uint64_t calls) {
    outcome.sizes_estimated[name] += calls;
  });
  for_each_name(record->not_supported, [&](const std::string& name, std::uint64_t) {
    outcome.not_supported.push_back(name);
  });
  return used;
}

std::vector<Share> shares(const json& list) {
  std::vector<Share> result;
  for (const json& item : list)
    result.push_back({item.at("name").get<std::string>(), item.at("bytes").get<Bytes>()});
  return result;
}

std::vector<ModuleShare> module_shares(const json& list) {
  std::vector<ModuleShare> result;
  for (const json& item : list)
    result.push_back({.name = item.at("name"),
                      .pattern = item.at("pattern"),
                      .bytes = item.at("bytes"),
                      .roles = item.at("roles")});
  return result;
}

Framework read_framework(const fs::path& file) {
  try {
    const json data = json::parse(read_whole(file));
    Framework result{.name = data.at("framework"),
                     .pid = data.at("pid"),
                     .steps = data.at("steps"),
                     .stopped_at_step = data.at("stopped_at_step"),
                     .error = data.at("error"),
                     .ended_out_of_memory = data.at("ended_out_of_memory"),
                     .error_was_lost = data.value("error_was_lost", false),
                     .out_of_memory = {},
                     .devices = {},
                     .snapshot = data.at("snapshot"),
                     .differences = data.value("differences", std::vector<std::string>{}),
                     .step_us = data.value("step_us", std::vector<double>{}),
                     .peak_resident = data.value("peak_resident", Bytes{0})};
    for (const json& event : data.at("out_of_memory"))
      result.out_of_memory.push_back({.device = event.at("device"),
                                      .requested = event.at("requested"),
                                      .line = event.at("line")});
    for (const json& device : data.at("devices"))
      result.devices.push_back({.device = device.at("device"),
                                .kind = device.value("kind", "cuda"),
                                .peak_requested = device.value("peak_requested", Bytes{0}),
                                .peak_allocated = device.at("peak_allocated"),
                                .peak_reserved = device.value("peak_reserved", Bytes{0}),
                                .phase = device.at("phase"),
                                .roles = shares(device.at("roles")),
                                .lines = shares(device.at("lines")),
                                .modules = module_shares(device.value("modules", json::array())),
                                .phase_peaks = device.at("phase_peaks"),
                                .card = device.value("card", ""),
                                .card_memory = device.value("card_memory", Bytes{0}),
                                .beside_allocator = device.value("beside_allocator", Bytes{0}),
                                .not_engaged = device.value("not_engaged", "")});
    return result;
  } catch (const json::exception& error) {
    throw InputError(
        fmt::format("{}: is not what the hook writes; did the program write there? ({})",
                    file.string(), error.what()));
  }
}

}  // namespace

Bytes Outcome::peak() const {
  Bytes most = 0;
  for (const auto& [index, device] : devices) most = std::max(most, device.peak);
  return most;
}

std::uint64_t Outcome::processes() const {
  for (const auto& [index, device] : devices)
    if (device.peak == peak()) return device.processes;
  return 0;
}

bool Outcome::out_of_memory() const {
  return std::any_of(frameworks.begin(), frameworks.end(),
                     [](const Framework& framework) { return framework.ended_out_of_memory; });
}

bool Outcome::was_stopped() const {
  bool any = false;
  for (const Framework& framework : frameworks) {
    any |= framework.stopped_at_step;
    const bool trained_or_failed = framework.steps > 0 || !framework.error.empty();
    if (trained_or_failed && !framework.stopped_at_step) return false;
    if (framework.ended_out_of_memory) return false;
  }
  return any && untold_processes == 0;
}

Outcome read_outcome(const fs::path& records) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(records))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Outcome outcome;
  std::set<std::string> untold;  // "process-PID"
  for (const fs::path& file : files)
    if (file.extension() == ".record" && add_record(outcome, file)) untold.insert(file.stem());
  for (const fs::path& file : files) {
    if (file.extension() != ".json") continue;
    outcome.frameworks.push_back(read_framework(file));
    untold.erase(fmt::format("process-{}", outcome.frameworks.back().pid));
  }
  outcome.untold_processes = untold.size();
  return outcome;
}

}  // namespace headroom::virtual_gpu
