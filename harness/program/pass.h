// Strategies that rewrite the Program of a training step: one registry for each axis, and one order
// in which plan_training() applies them, never the user's: pruning, precision, differentiation,
// checkpointing, accumulation, optimizer, lowering, execution.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/registry.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

// A strategy of another axis that a pass cannot be combined with.
struct Refusal {
  std::string axis;
  std::string name;
  std::string why;
  // With which parameters of the pass; absent: with any.
  std::function<bool(const Spec&)> when = {};
};

template <typename Axis>
struct ProgramPass {
  static constexpr std::string_view kKind = Axis::kKind;
  // The name that stands for leaving the Program as it is; no plug-in has it.
  static constexpr std::string_view kNeutral = Axis::kNeutral;
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples = {};
  std::function<Program(Program, const Spec&)> apply;
  // What else the pass does once the update ops stand.
  std::function<Program(Program, const Spec&)> finish = nullptr;
  std::vector<Refusal> refuses = {};
  // Why `apply` did not do what its name says ("" = it did), as seen from the Program before and
  // after it. A pass that does it to no Program of a step makes the sample invalid. May be absent.
  std::function<std::string(const Spec&, const Program& before, const Program& after)>
      why_not_engaged = {};
  // Of passes over the forward pass: what is left to do once it is differentiated. May be empty.
  std::function<Program(Program, const Spec&)> apply_to_gradients = nullptr;
  // What is missing in the lowered Program of a step for a result under this name to count
  // ("" = engaged). May be empty: nothing can be.
  std::function<std::string(const Program& lowered, const Spec&)> why_not_lowered = nullptr;
  // What is not as it was without it, but for memory and time. "": nothing, bit for bit, in
  // checkpointing and execution; not stated elsewhere.
  std::string breaks = {};
};

// Of the forward pass, before it is differentiated.
struct PruningAxis {
  static constexpr std::string_view kKind = "pruning", kNeutral = "none";
};
struct PrecisionAxis {
  static constexpr std::string_view kKind = "precision", kNeutral = "fp32";
};
// Of forward and backward pass.
struct CheckpointingAxis {
  static constexpr std::string_view kKind = "checkpointing", kNeutral = "none";
};
// Adds the update ops.
struct OptimizerAxis {
  static constexpr std::string_view kKind = "optimizer", kNeutral = "";
};
// Of the whole lowered step: order, what is done in place, how long values live.
struct ExecutionAxis {
  static constexpr std::string_view kKind = "execution", kNeutral = "last_use";
};

using PruningStrategy = ProgramPass<PruningAxis>;
using PrecisionStrategy = ProgramPass<PrecisionAxis>;
using CheckpointingStrategy = ProgramPass<CheckpointingAxis>;
using OptimizerStrategy = ProgramPass<OptimizerAxis>;
using ExecutionStrategy = ProgramPass<ExecutionAxis>;

// The strategy that a spec names, null for the neutral one. Throws InputError for unknown names.
template <typename Strategy>
const Strategy* find_strategy(const Spec& spec) {
  if (spec.name() == Strategy::kNeutral) return nullptr;
  return &Registry<Strategy>::instance().find(spec.name());
}

// Throws InputError for unknown names and parameters.
template <typename Strategy>
void check_strategy(const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  spec.require_known(strategy == nullptr ? std::vector<std::string>{} : strategy->parameters);
}

template <typename Strategy>
Program apply_pass(Program program, const Spec& spec) {
  check_strategy<Strategy>(spec);
  const Strategy* strategy = find_strategy<Strategy>(spec);
  return strategy == nullptr ? program : strategy->apply(std::move(program), spec);
}

template <typename Strategy>
Program apply_to_gradients(Program program, const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  if (strategy == nullptr || !strategy->apply_to_gradients) return program;
  return strategy->apply_to_gradients(std::move(program), spec);
}

// "" when the strategy is neutral, or what it did shows in every Program.
template <typename Strategy>
std::string why_not_lowered(std::span<const Program> lowered, const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  if (strategy == nullptr || !strategy->why_not_lowered) return "";
  for (const Program& program : lowered)
    if (std::string why = strategy->why_not_lowered(program, spec); !why.empty())
      return std::string(Strategy::kKind) + " " + spec.to_string() + ": " + why;
  return "";
}

template <typename Strategy>
Program finish_pass(Program program, const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  if (strategy == nullptr || !strategy->finish) return program;
  return strategy->finish(std::move(program), spec);
}

}  // namespace headroom
