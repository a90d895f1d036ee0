#include "harness/cli/text/peak_change_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/text.h"
#include "harness/trace/peak_use.h"

namespace headroom {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using Held = PeakChange::Held;
using Part = PeakChange::Part;

constexpr std::size_t kMostChanged = 5;
// The ways to divide the peak, most informative first. The first that changed is shown, or all.
constexpr std::array<const char*, 4> kKinds = {"line", "op", "module", "role"};

// Throws InputError for what no device holds, so that sums of it cannot wrap.
Bytes bytes_of(const json& figure) {
  constexpr Bytes kMost = Bytes{1} << 50;
  if (!figure.is_number_unsigned() || figure.get<Bytes>() > kMost)
    throw InputError(fmt::format("{} is not a number of bytes", figure.dump()));
  return figure.get<Bytes>();
}

// Bytes by name, of all devices of all processes together.
std::map<std::string, Bytes> held_by(const json& gpu_json, const std::string& kinds) {
  std::map<std::string, Bytes> result;
  for (const json& framework : gpu_json.at("frameworks"))
    for (const json& device : framework.at("devices"))
      for (const json& share : device.value(kinds, json::array()))
        result[share.at("name").get<std::string>()] += bytes_of(share.at("bytes"));
  return result;
}

std::string difference(const Held& held) {
  return held.now > held.before ? "+" + format_bytes(held.now - held.before)
                                : "\u2212" + format_bytes(held.before - held.now);
}

std::string figure(const char* name, const Held& held) {
  if (held.now == held.before)
    return fmt::format("{} at the peak {}, as before", name, format_bytes(held.now));
  std::string text = fmt::format("{} at the peak {} → {}, {}", name, format_bytes(held.before),
                                 format_bytes(held.now), difference(held));
  if (held.before > 0)
    text +=
        fmt::format(" ({:+.1f} %)",
                    100 * (static_cast<double>(held.now) / static_cast<double>(held.before) - 1));
  return text;
}

const char* word_of(PeakChange::Direction direction) {
  switch (direction) {
    case PeakChange::Direction::grew:
      return "GREW";
    case PeakChange::Direction::shrank:
      return "SHRANK";
    case PeakChange::Direction::mixed:
      return "MIXED";
    case PeakChange::Direction::same:
      break;
  }
  return "SAME";
}

std::string name_of(const Part& part) {
  if (part.name.empty()) return "(not recorded in the history)";
  return printable(part.name) +
         (part.before.empty() ? "" : fmt::format("  (before: {})", printable(part.before)));
}

std::string table(const std::vector<const Part*>& parts, const std::string& heading,
                  std::size_t most) {
  if (parts.empty()) return "";
  std::string text = heading + ":\n";
  for (std::size_t i = 0; i < std::min(parts.size(), most); ++i)
    text += fmt::format("  {:>12}  {:>11} → {:>11}  {}\n", difference(parts[i]->held),
                        format_bytes(parts[i]->held.before), format_bytes(parts[i]->held.now),
                        name_of(*parts[i]));
  return text;
}

// The parts of a kind that grew, the most grown first, and those that shrank, likewise.
struct Moved {
  std::vector<const Part*> grew, shrank;
};
Moved moved(const PeakChange& change, const std::string& kind) {
  Moved parts;
  for (const Part& part : change.parts)
    if (part.kind == kind)
      (part.held.now > part.held.before ? parts.grew : parts.shrank).push_back(&part);
  std::reverse(parts.shrank.begin(), parts.shrank.end());
  return parts;
}

}  // namespace

PeakMemory read_gpu_peak(const std::filesystem::path& place, const std::string& where) try {
  const auto file = std::filesystem::is_directory(place) ? place / "gpu.json" : place;
  const ReadingTime bounded(file);
  return peak_of_gpu_json(json::parse(read_file(file)));
} catch (const std::exception& error) {
  throw InputError(
      fmt::format("{}: this is not the gpu.json of an earlier run; name one, or its directory ({})",
                  where, error.what()));
}

PeakMemory peak_of_gpu_json(const json& gpu_json) {
  PeakMemory peak{
      .allocated = std::nullopt, .reserved = bytes_of(gpu_json.at("peak_bytes")), .parts = {}};
  for (const json& framework : gpu_json.at("frameworks"))
    for (const json& device : framework.at("devices"))
      peak.allocated = peak.allocated.value_or(0) + bytes_of(device.at("peak_allocated_bytes"));
  for (const char* kind : {"role", "module", "line"})
    peak.parts[kind] = held_by(gpu_json, fmt::format("{}s", kind));
  return peak;
}

PeakMemory peak_of_history(const Trace& trace) {
  PeakUse use = use_at_peak(trace);
  PeakMemory peak{.allocated = use.allocated, .reserved = use.reserved, .parts = {}};
  peak.parts[trace.header.rules.empty() ? "line" : "op"] = std::move(use.by_op);
  if (!use.by_role.empty()) peak.parts["role"] = std::move(use.by_role);
  return peak;
}

std::string to_words(const PeakChange& change, bool all) {
  std::vector<std::string> figures;
  if (change.allocated) figures.push_back(figure("allocated", *change.allocated));
  if (change.reserved) figures.push_back(figure("reserved", *change.reserved));
  std::string text =
      fmt::format("{}: {}.\n", word_of(change.direction()),
                  figures.empty() ? "neither run recorded its peak" : figures.front());
  if (figures.size() > 1) text += fmt::format("{:>8}{}.\n", "", figures.back());
  std::size_t told = 0;
  for (const char* kind : kKinds) {
    const Moved parts = moved(change, kind);
    if (parts.grew.empty() && parts.shrank.empty()) continue;
    const std::size_t most = all ? change.parts.size() : kMostChanged;
    text += table(parts.grew, fmt::format("Grew, by {}", kind), most);
    text += table(parts.shrank, fmt::format("Shrank, by {}", kind), most);
    told += std::min(most, parts.grew.size()) + std::min(most, parts.shrank.size());
    if (!all) break;
  }
  if (all)
    text += fmt::format("{} roles, modules and places hold the same in both.\n", change.same_parts);
  else if (told < change.parts.size())
    text += fmt::format("{} of {} changes shown: headroom compare with --all shows every one.\n",
                        told, change.parts.size());
  return text;
}

ordered_json to_json(const PeakChange& change) {
  const auto held = [](const Held& bytes) -> ordered_json {
    return {{"before_bytes", bytes.before}, {"now_bytes", bytes.now}};
  };
  ordered_json result = {{"grew", change.grew()},
                         {"reserved", change.reserved ? held(*change.reserved) : ordered_json()},
                         {"allocated", change.allocated ? held(*change.allocated) : ordered_json()},
                         {"parts", ordered_json::array()}};
  for (const Part& part : change.parts) {
    ordered_json entry = {{"kind", part.kind}, {"name", part.name}};
    if (!part.before.empty()) entry["name_before"] = part.before;
    entry.update(held(part.held));
    result["parts"].push_back(entry);
  }
  return result;
}

}  // namespace headroom
