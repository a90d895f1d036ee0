#include "harness/runner/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "harness/base/sha256.h"
#include "harness/base/units.h"
#include "harness/device/host/host_memory.h"
#include "harness/device/traits.h"
#include "harness/plan/scenario.h"

namespace headroom {

std::uint64_t steps_per_turn(std::chrono::nanoseconds step, int measured_steps) {
  const auto most = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(measured_steps) / 4);
  if (step.count() <= 0) return most;
  const auto fill = (std::chrono::nanoseconds{kTurn} + step).count() - 1;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(fill / step.count()), 1, most);
}

std::vector<std::size_t> turn_order(std::uint64_t seed, std::size_t arms, std::size_t round) {
  std::vector<std::size_t> order(arms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::uint64_t> rank;
  for (const std::size_t arm : order)
    rank.push_back(hashed_number(fmt::format("{}\nround {}\narm {}", seed, round / 2, arm)));
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::string why_no_turns(const std::vector<const Cell*>& cells) {
  Bytes needed = 0;
  for (const Cell* cell : cells) {
    if (!takes_turns(cell->scenario))
      return fmt::format("the scenario {} takes no steps", cell->scenario.name());
    const DeviceTraits traits = traits_of(cell->device);
    if (!traits.computes || traits.has_driver)
      return fmt::format("{} is not shared between processes", cell->device.name());
    if (cell->pipeline.name() != "direct")
      return "an input pipeline works on while its process waits";
    needed += cell->device.bytes("capacity", default_host_capacity());
  }
  if (const Bytes room = default_host_capacity(); needed > room)
    return fmt::format("together the configurations may take {}, and half of the free memory is {}",
                       format_bytes(needed), format_bytes(room));
  return "";
}

}  // namespace headroom
