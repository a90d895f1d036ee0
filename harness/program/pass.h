// Strategies that rewrite the Program of a training step. Each axis has its own registry, and
// plan_training() applies the axes in a fixed order: pruning, precision, differentiation,
// checkpointing, accumulation, optimizer, lowering, execution.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

// A strategy of another axis that a pass cannot be combined with.
struct Refusal {
  std::string axis;
  std::string name;
  std::string why;
  // The parameters of the pass for which the combination is refused; absent: all.
  std::function<bool(const Spec&)> when = {};
};

template <typename Axis>
struct ProgramPass {
  static constexpr std::string_view kKind = Axis::kKind;
  // The name for leaving the Program unchanged; no plug-in has it.
  static constexpr std::string_view kNeutral = Axis::kNeutral;
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples = {};
  std::function<Program(Program, const Spec&)> apply;
  // The part of the pass that runs once the update ops exist.
  std::function<Program(Program, const Spec&)> finish = nullptr;
  std::vector<Refusal> refuses = {};
  // Why `apply` did not do what its name says, judged by the Program before and after it. If it had
  // no effect on any Program of a step, the sample is invalid. May be null.
  std::function<Reason(const Spec&, const Program& before, const Program& after)> why_not_engaged =
      {};
  // For passes over the forward pass: the part that runs after differentiation. May be empty.
  std::function<Program(Program, const Spec&)> apply_to_gradients = nullptr;
  // Why the lowered Program of a step does not show this pass, so that a result under its name
  // would not count; absent if it does. May be null: then nothing is checked.
  std::function<Reason(const Program& lowered, const Spec&)> why_not_lowered = nullptr;
  // Changes by the pass other than to memory and time. In checkpointing and execution, "" means
  // that results stay the same bit for bit; on other axes it means that nothing is stated.
  std::string breaks = {};
};

// Applies to the forward pass, before differentiation.
struct PruningAxis {
  static constexpr std::string_view kKind = "pruning", kNeutral = "none";
};
struct PrecisionAxis {
  static constexpr std::string_view kKind = "precision", kNeutral = "fp32";
};
// Applies to the forward and backward pass.
struct CheckpointingAxis {
  static constexpr std::string_view kKind = "checkpointing", kNeutral = "none";
};
// Adds the update ops.
struct OptimizerAxis {
  static constexpr std::string_view kKind = "optimizer", kNeutral = "";
};
// Applies to the whole lowered step: order, in-place operation, lifetimes of values.
struct ExecutionAxis {
  static constexpr std::string_view kKind = "execution", kNeutral = "last_use";
};

using PruningStrategy = ProgramPass<PruningAxis>;
using PrecisionStrategy = ProgramPass<PrecisionAxis>;
using CheckpointingStrategy = ProgramPass<CheckpointingAxis>;
using OptimizerStrategy = ProgramPass<OptimizerAxis>;
using ExecutionStrategy = ProgramPass<ExecutionAxis>;

// The strategy that a spec names; null for the neutral one. Throws InputError for unknown names.
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

// Absent when the strategy is neutral or its effect is visible in every Program.
template <typename Strategy>
Reason why_not_lowered(std::span<const Program> lowered, const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  if (strategy == nullptr || !strategy->why_not_lowered) return std::nullopt;
  for (const Program& program : lowered)
    if (const Reason why = strategy->why_not_lowered(program, spec))
      return std::string(Strategy::kKind) + " " + spec.to_string() + ": " + *why;
  return std::nullopt;
}

template <typename Strategy>
Program finish_pass(Program program, const Spec& spec) {
  const Strategy* strategy = find_strategy<Strategy>(spec);
  if (strategy == nullptr || !strategy->finish) return program;
  return strategy->finish(std::move(program), spec);
}

}  // namespace headroom
