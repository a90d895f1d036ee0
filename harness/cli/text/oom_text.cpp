#include "harness/cli/text/oom_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "harness/base/text.h"

namespace headroom {
namespace {

constexpr std::size_t kPinsToName = 5;

std::string describe(const PinningBlock& pin) {
  return fmt::format("{} ({}{}{})", format_bytes(pin.bytes),
                     pin.op.empty() ? std::string(to_string(pin.role)) : printable(pin.op),
                     pin.op.empty() ? "" : fmt::format(", {}", to_string(pin.role)),
                     pin.step > 0 ? fmt::format(", since step {}", pin.step) : "");
}

}  // namespace

std::string failure_text(const ReplayFailure& failure) {
  const OomExplanation& why = failure.explanation;
  const std::string text = fmt::format(
      "request {} ({}{}) of {} could not be served.\n"
      "  {} reserved, {} of it in use; free {}, the largest hole {}.\n",
      failure.request + 1,
      failure.op.empty() ? std::string(to_string(failure.role)) : printable(failure.op),
      failure.step > 0 ? fmt::format(", step {}", failure.step) : "",
      format_bytes(why.requested_bytes), format_bytes(why.reserved_bytes),
      format_bytes(why.live_bytes), format_bytes(why.free_bytes),
      format_bytes(why.largest_hole_bytes));
  if (why.pins.empty()) {
    if (why.largest_hole_bytes < why.requested_bytes)
      return text + "  No segment is as large as the request.\n";
    return text + fmt::format("  The largest hole is large enough, but not for this request: {}.\n",
                              failure.message);
  }
  std::vector<std::string> named;
  for (const PinningBlock& pin : why.pins)
    if (named.size() < kPinsToName) named.push_back(describe(pin));
  return text + fmt::format("  Smallest obstacle: {} in {} {}: {}{}\n",
                            format_bytes(why.pinned_bytes), why.pins.size(),
                            why.pins.size() == 1 ? "block" : "blocks", fmt::join(named, "; "),
                            why.pins.size() > named.size() ? "; …" : ".");
}

nlohmann::ordered_json to_json(const ReplayFailure& failure) {
  const OomExplanation& why = failure.explanation;
  auto pins = nlohmann::ordered_json::array();
  for (const PinningBlock& pin : why.pins)
    pins.push_back({{"bytes", pin.bytes},
                    {"role", to_string(pin.role)},
                    {"phase", to_string(pin.phase)},
                    {"op", pin.op},
                    {"step", pin.step}});
  return {{"request", failure.request},
          {"step", failure.step},
          {"op", failure.op},
          {"role", to_string(failure.role)},
          {"requested_bytes", why.requested_bytes},
          {"reserved_bytes", why.reserved_bytes},
          {"live_bytes", why.live_bytes},
          {"free_bytes", why.free_bytes},
          {"largest_hole_bytes", why.largest_hole_bytes},
          {"pinned_bytes", why.pinned_bytes},
          {"pins", pins},
          {"message", failure.message}};
}

void add_capacity(nlohmann::ordered_json& json, const ViableCapacity& viable) {
  json["smallest_capacity_bytes"] = nullptr;
  if (viable.smallest) json["smallest_capacity_bytes"] = *viable.smallest;
  json["smallest_capacity_resolution_bytes"] = viable.resolution;
  json["capacity_holes_bytes"] = viable.holes;
  json["capacity_grid"] = {
      {"first_bytes", viable.first}, {"last_bytes", viable.last}, {"points", viable.points}};
}

}  // namespace headroom
