#include "harness/cli/planned_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/units.h"
#include "harness/device/device.h"
#include "harness/device/meta/cards.h"
#include "harness/memory/allocator.h"
#include "harness/plan/axes.h"

namespace headroom {
namespace {

// Reads meta(…), or a short form: meta:CARD or CARD, and meta:CAPACITY or CAPACITY for a card of
// that size with granules of 2 MiB, as on CUDA.
Spec read_device(const std::string& text) {
  constexpr std::string_view kPrefix = "meta:";
  const std::string rest = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  if (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) != 0) {
    parse_bytes(rest, "--device");
    return Spec("meta", {{"capacity", rest}, {"granule", "2MiB"}});
  }
  if (text.starts_with(kPrefix) || card_called(text) != nullptr)
    return Spec("meta", {{"card", find_card(rest).id}});
  const Spec spec = Spec::parse(text);
  if (Registry<DeviceKind>::instance().contains(spec.name())) return spec;
  std::vector<std::string> known = Registry<DeviceKind>::instance().names();
  for (const Card& one : cards()) known.push_back(one.id);
  throw_unknown_name("device or card", spec.name(), known);
}

std::vector<Spec> read_allocators(const AxisOverrides& axes) {
  std::vector<Spec> result;
  if (const auto named = axes.find("allocator"); named != axes.end()) {
    for (const std::string& text : named->second) result.push_back(Spec::parse_composition(text));
  } else {
    for (const std::string& name : Registry<AllocatorStrategy>::instance().names())
      result.emplace_back(name);
  }
  return result;
}

// Every combination of the values given for the axes.
std::vector<Cell> combinations(const Cell& cell, const AxisOverrides& axes) {
  std::vector<Cell> cells = {cell};
  for (const auto& [axis, values] : axes) {
    if (axis == "workload" || axis == "device")
      throw InputError(fmt::format("-a {0}=…: this command takes one {0}, {1}", axis,
                                   axis == "device" ? "named by --device" : "the first argument"));
    if (axis == "allocator") continue;
    constexpr std::size_t kMostCells = 10'000;
    if (values.size() * cells.size() > kMostCells)
      throw InputError(fmt::format("-a {}=…: more than {} combinations; ask for fewer at a time",
                                   axis, kMostCells));
    std::vector<Cell> combined;
    for (const Cell& one : cells) {
      for (const std::string& value : values) {
        combined.push_back(one);
        set_axis(combined.back(), axis, value);
      }
    }
    cells = std::move(combined);
  }
  return cells;
}

}  // namespace

PlannedCells read_planned_cells(const std::string& workload, const std::string& device,
                                const AxisOverrides& axes, int steps) {
  Cell cell;
  cell.device = read_device(device);
  cell.warmup_steps = steps > 1 ? 1 : 0;
  cell.measured_steps = steps - cell.warmup_steps;
  set_axis(cell, "workload", workload);
  resolve_rules(cell);
  return {.cells = combinations(cell, axes), .allocators = read_allocators(axes)};
}

std::string axes_beside_allocator(const Cell& cell) {
  std::vector<std::string> texts;
  for (const std::string& axis : axis_names()) {
    if (axis == "workload" || axis == "device" || axis == "allocator") continue;
    const std::string value = axis_value(cell, axis);
    if (axis == "optimizer" || value != axis_value(Cell{}, axis))
      texts.push_back(fmt::format("{}={}", axis, value));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace headroom
