#include "harness/cli/text/gpu_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "harness/base/error.h"

namespace headroom {
namespace {

using nlohmann::json;

constexpr std::size_t kMostGrownParts = 12;

// Bytes by name, of all devices of all processes together.
std::map<std::string, Bytes> held_by(const json& run, const char* kinds) {
  std::map<std::string, Bytes> result;
  for (const json& framework : run.at("frameworks"))
    for (const json& device : framework.at("devices"))
      for (const json& share : device.value(kinds, json::array()))
        result[share.at("name").get<std::string>()] += share.at("bytes").get<Bytes>();
  return result;
}

Bytes allocated_in(const json& run) {
  Bytes sum = 0;
  for (const json& framework : run.at("frameworks"))
    for (const json& device : framework.at("devices"))
      sum += device.at("peak_allocated_bytes").get<Bytes>();
  return sum;
}

}  // namespace

json read_earlier_gpu_run(const std::filesystem::path& place) {
  const auto file = std::filesystem::is_directory(place) ? place / "gpu.json" : place;
  std::ifstream in(file);
  json run = json::parse(in, nullptr, false);
  if (!in || !run.is_object() || !run.contains("frameworks") || !run.contains("peak_bytes"))
    throw InputError(fmt::format(
        "--against {}: this is no gpu.json of an earlier run; name one, or its directory",
        place.string()));
  return run;
}

GpuGrowth growth_between(const json& before, const json& now) {
  GpuGrowth growth{.reserved = {before.at("peak_bytes"), now.at("peak_bytes")},
                   .allocated = {allocated_in(before), allocated_in(now)},
                   .parts = {}};
  for (const char* kind : {"role", "module", "line"}) {
    const std::string kinds = fmt::format("{}s", kind);
    const auto earlier = held_by(before, kinds.c_str());
    for (const auto& [name, bytes] : held_by(now, kinds.c_str())) {
      const auto found = earlier.find(name);
      const GpuGrowth::Held held{found == earlier.end() ? 0 : found->second, bytes};
      if (held.grew()) growth.parts.push_back({kind, name, held});
    }
  }
  std::stable_sort(growth.parts.begin(), growth.parts.end(), [](const auto& a, const auto& b) {
    return a.held.now - a.held.before > b.held.now - b.held.before;
  });
  return growth;
}

std::string to_words(const GpuGrowth& growth, const std::filesystem::path& before) {
  std::string text =
      fmt::format("\n{} since {}: {} reserved at the peak, {} before; {} allocated, {} before\n",
                  growth.grew() ? "GREW" : "NO GROWTH", before.string(),
                  format_bytes(growth.reserved.now), format_bytes(growth.reserved.before),
                  format_bytes(growth.allocated.now), format_bytes(growth.allocated.before));
  if (!growth.grew()) return text;
  for (std::size_t i = 0; i < std::min(growth.parts.size(), kMostGrownParts); ++i) {
    const GpuGrowth::Part& part = growth.parts[i];
    text += fmt::format("    {:>12}  {:<6}  {}\n",
                        "+" + format_bytes(part.held.now - part.held.before), part.kind, part.name);
  }
  if (growth.parts.size() > kMostGrownParts)
    text += fmt::format("    and {} others\n", growth.parts.size() - kMostGrownParts);
  return text;
}

nlohmann::ordered_json to_json(const GpuGrowth& growth) {
  const auto held = [](const GpuGrowth::Held& bytes) -> nlohmann::ordered_json {
    return {{"before_bytes", bytes.before}, {"now_bytes", bytes.now}};
  };
  nlohmann::ordered_json result = {{"grew", growth.grew()},
                                   {"reserved", held(growth.reserved)},
                                   {"allocated", held(growth.allocated)},
                                   {"parts", nlohmann::ordered_json::array()}};
  for (const GpuGrowth::Part& part : growth.parts) {
    nlohmann::ordered_json entry = {{"kind", part.kind}, {"name", part.name}};
    entry.update(held(part.held));
    result["parts"].push_back(entry);
  }
  return result;
}

}  // namespace headroom
