#include "harness/cli/pytorch_needs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/plan/scenario.h"

namespace headroom {
namespace {

// A workload's network in bench/frameworks, and the parameters that both have.
struct Counterpart {
  std::string network;
  std::vector<std::string> required, optional;
};

const std::map<std::string, Counterpart> kNetworks = {
    {"bert", {"masked_bert", {"size", "batch", "sequence"}, {"vocabulary"}}},
    {"gpt", {"gpt2", {"size", "batch", "sequence"}, {"vocabulary"}}},
    {"resnet", {"resnet", {"depth", "batch", "image", "classes", "stem"}, {}}},
};

// Axes that are translated separately, and those that PyTorch decides by itself.
const std::vector<std::string> kOwnWays = {"workload",  "device",    "rules",
                                           "allocator", "execution", "pipeline"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void set_network(Spec& scenario, const Spec& workload) {
  const auto found = kNetworks.find(workload.name());
  if (found == kNetworks.end())
    throw InputError(fmt::format(
        "--pytorch has no counterpart of {}; it knows bert, gpt and resnet", workload.name()));
  const auto& [network, required, optional] = found->second;
  scenario.set("network", network);
  for (const std::string& key : required)
    if (!workload.has(key))
      throw InputError(fmt::format("--pytorch: the workload must say {}; {} is missing",
                                   fmt::join(required, ", "), key));
  for (const auto& [key, value] : workload.parameters()) {
    if (key == "stem") {
      if (value != "imagenet")
        throw InputError("--pytorch: torchvision's residual networks have stem=imagenet");
      continue;
    }
    if (!contains(required, key) && !contains(optional, key))
      throw InputError(fmt::format("--pytorch: {} of {} has no counterpart", key, workload.name()));
    scenario.set(key, value);
  }
}

void set_axes(Spec& scenario, const Cell& cell) {
  for (const std::string& axis : axis_names()) {
    if (contains(kOwnWays, axis)) continue;
    const std::string value = axis_value(cell, axis);
    if (axis == "optimizer" && (value == "sgd" || value == "adam"))
      scenario.set("optimizer", value);
    else if (axis == "precision" && (value == "fp32" || value == "bf16"))
      scenario.set("precision", value);
    else if (value != axis_value(Cell{}, axis))
      throw InputError(fmt::format("--pytorch: {}={} has no counterpart", axis, value));
  }
}

Cell cell_of_pytorch(const Cell& cell, int steps) {
  if (!cell.device.has("card"))
    throw InputError("--pytorch: needs a card, such as --device a100-40gb");
  Cell asked;
  asked.workload = asked.allocator = Spec(kNothing);
  asked.device = Spec("virtual");
  asked.device.set("card", cell.device.text("card", ""));
  asked.scenario = Spec("virtual_gpu");
  asked.scenario.set("framework", "pytorch");
  asked.scenario.set("steps", std::to_string(steps));
  set_network(asked.scenario, cell.workload);
  set_axes(asked.scenario, cell);
  return asked;
}

// The role of Headroom's engine that corresponds to each figure of the scenario.
const std::map<std::string, std::string> kRoles = {
    {"weight_bytes", "weight"},         {"gradient_bytes", "gradient"},
    {"state_bytes", "optimizer_state"}, {"activation_bytes", "activation"},
    {"temporary_bytes", "temporary"},   {"other_bytes", "other"}};

}  // namespace

PytorchNeeds needs_of_pytorch(const Cell& cell, int steps) {
  const Cell asked = cell_of_pytorch(cell, steps);
  if (const Reason why = unavailable_scenario(asked.scenario))
    throw NotSupported("--pytorch: " + *why);
  const ScenarioResult result = run_scenario(asked, 1);
  if (result.why_not_engaged) throw Error("--pytorch: " + *result.why_not_engaged);
  const auto bytes = [&](const std::string& name) -> std::optional<Bytes> {
    const auto figure = result.figures.find(name);
    if (figure == result.figures.end()) return std::nullopt;
    return static_cast<Bytes>(figure->second);
  };
  PytorchNeeds needs{.engine = result.engine,
                     .trained = result.figures.at("trained") == 1,
                     .note = result.note,
                     .allocated = bytes("allocated_bytes.overall_peak"),
                     .reserved = bytes("reserved_bytes.overall_peak"),
                     .roles = {}};
  for (const auto& [figure, role] : kRoles)
    if (const auto part = bytes(figure)) needs.roles[role] = *part;
  return needs;
}

}  // namespace headroom
