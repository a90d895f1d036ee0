// Structured pruning: whole channels are removed, together with the adjacent rows and columns of
// weights, so that the network becomes smaller (Li et al. 2017, "Pruning Filters for ConvNets").
// Only channels without other readers are removed: those between two convolutions, or two linear
// layers, with only per-channel ops in between; channels read by a residual sum or attention stay.
// Channels are removed before the first step, and the rest is trained from its initial weights, so
// memory and time are those of a pruned network, but accuracy is that of a smaller network trained
// from scratch.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/program/pass.h"

namespace headroom {
namespace {

bool is_per_channel(const Op& op) {
  static const std::set<std::string_view> kinds = {"batch_norm", "batch_norm_inference",
                                                   "relu",       "leaky_relu",
                                                   "gelu",       "tanh",
                                                   "dropout",    "sum_pool",
                                                   "upsample"};
  return kinds.contains(op.kind);
}

// The values whose channels must shrink together.
struct Channels {
  std::set<ValueId> outer;  // persistent values with the channels in dimension 0
  std::set<ValueId> inner;  // weights with the channels in dimension 1
};

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.ops.size(); ++i)
      for (const ValueId id : program.ops[i].inputs)
        if (id != kNoValue) users_[id].push_back(i);
  }

  // Returns the channels between `producer` and the only following layer; absent if others read
  // them.
  std::optional<Channels> behind(const Op& producer) const {
    Channels channels;
    channels.outer.insert(producer.inputs.begin() + 1, producer.inputs.end());
    if (!follow(producer.outputs[0], producer.kind, channels) || channels.inner.size() != 1)
      return std::nullopt;
    for (const auto* side : {&channels.outer, &channels.inner})
      for (const ValueId id : *side)
        if (!program_.value(id).persistent || shared(id)) return std::nullopt;
    return channels;
  }

 private:
  bool shared(ValueId persistent) const { return users_.at(persistent).size() > 1; }

  bool follow(ValueId value, std::string_view kind, Channels& channels) const {
    if (std::count(program_.results.begin(), program_.results.end(), value) > 0) return false;
    const auto users = users_.find(value);
    if (users == users_.end()) return true;  // an unused by-product
    return std::all_of(users->second.begin(), users->second.end(), [&](std::size_t index) {
      const Op& op = program_.ops[index];
      if (op.kind == kind && op.inputs[0] == value) {
        channels.inner.insert(op.inputs[1]);
        return true;
      }
      if (op.kind == "update_statistics") {
        channels.outer.insert(op.mutates.begin(), op.mutates.end());
        return true;
      }
      if (!is_per_channel(op) || op.inputs[0] != value) return false;
      if (op.kind.starts_with("batch_norm"))
        channels.outer.insert(op.inputs.begin() + 1, op.inputs.end());
      return std::all_of(op.outputs.begin(), op.outputs.end(),
                         [&](ValueId id) { return follow(id, kind, channels); });
    });
  }

  const Program& program_;
  std::map<ValueId, std::vector<std::size_t>> users_;
};

void infer_again(Program& program) {
  for (const Op& op : program.ops) {
    std::vector<Value> inputs;
    for (const ValueId id : op.inputs)
      inputs.push_back(id == kNoValue ? Value{} : program.value(id));
    const auto outputs = Registry<OpDefinition>::instance().find(op.kind).infer(op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      program.values[op.outputs[i]].shape = outputs[i].shape;
  }
}

Program remove_channels(Program program, const Spec& spec) {
  const double keep = spec.number("keep", 0.5);
  if (!(keep > 0 && keep < 1))
    throw InputError("channels: keep is the share of channels that stay, between 0 and 1");
  if (!program.frozen.empty())
    throw NotSupported(
        "pruning=channels: '" + program.name +
        "' uses weights that another turn of the step trains, and a turn does not know which "
        "channels the other removes; use pruning=magnitude");
  const Finder finder(program);
  std::vector<Channels> found;
  for (const Op& op : program.ops)
    if (op.kind == "convolution" || op.kind == "linear")
      if (auto channels = finder.behind(op)) found.push_back(std::move(*channels));
  for (const Channels& channels : found) {
    const auto shrink = [&](ValueId id, std::size_t dimension) {
      std::int64_t& size = program.values[id].shape.at(dimension);
      size = std::max<std::int64_t>(1, std::llround(keep * static_cast<double>(size)));
    };
    for (const ValueId id : channels.outer) shrink(id, 0);
    for (const ValueId id : channels.inner) shrink(id, 1);
  }
  if (found.empty())
    throw NotSupported("pruning=channels: '" + program.name +
                       "' has no two layers with only per-channel ops in between");
  infer_again(program);
  return program;
}

const bool channels_is_registered = Registry<PruningStrategy>::instance().add(
    {.name = "channels",
     .summary =
         "Removes channels between two layers before the first step, which makes a smaller network",
     .parameters = {"keep"},
     .examples = {"channels(keep=0.5)"},
     .apply = remove_channels,
     .breaks = "a smaller network is trained"});

}  // namespace
}  // namespace headroom
