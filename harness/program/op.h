// One operation of a Program, and the registry entry that defines its kind.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/program/value.h"

namespace headroom {

// The last two apply to whole Programs, in workloads whose networks take turns.
enum class Phase : std::uint8_t {
  load,
  forward,
  backward,
  update,
  evaluate,
  initialize,
  discriminator,
  generator
};
inline constexpr int kPhaseCount = 8;
std::string_view to_string(Phase phase);

using Attribute = std::variant<std::int64_t, double, std::vector<std::int64_t>>;
using Attributes = std::map<std::string, Attribute>;

struct Op {
  std::string kind;             // name of a registered OpDefinition
  std::string name;             // "layer1.0.conv1"; its first part is the module
  std::vector<ValueId> inputs;  // may contain kNoValue for an absent optional operand
  std::vector<ValueId> outputs = {};
  std::vector<ValueId> mutates = {};  // inputs changed in place (weights in an update)
  Attributes attributes = {};
  Phase phase = Phase::forward;
  ValueId workspace = kNoValue;  // set by lower()

  std::int64_t integer(const std::string& key) const;  // throws Error when absent
  double number(const std::string& key) const;
  const std::vector<std::int64_t>& list(const std::string& key) const;
};

class ProgramBuilder;

// The arguments of a kind's backward rule.
struct GradientContext {
  ProgramBuilder& builder;         // emits into the backward phase
  const Op& op;                    // the forward op
  std::vector<ValueId> d_outputs;  // gradients of op.outputs; kNoValue where none flows
  std::vector<bool> wanted;        // per input: is a gradient needed?
};

struct OpDefinition {
  static constexpr std::string_view kKind = "operation";
  std::string name;     // the kind
  std::string summary;  // operands and results with shapes
  // Shapes and element types of the outputs; throws Error on operands that do not fit.
  std::function<std::vector<Value>(const Op&, std::span<const Value> inputs)> infer;
  // Gradients of the inputs (kNoValue where none). Empty: the kind is not differentiable.
  std::function<std::vector<ValueId>(GradientContext&)> differentiate = nullptr;
  // The first output may be Program::loss: the backward rule starts from gradient 1 there.
  bool makes_loss = false;
  // Floating-point operations of one execution (multiply and add count as two). If empty, the kind
  // counts as 0.
  std::function<double(const Op&, std::span<const Value> inputs, std::span<const Value> outputs)>
      flops = nullptr;
};

}  // namespace headroom
