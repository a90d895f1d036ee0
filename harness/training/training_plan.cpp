#include "harness/training/training_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "harness/base/error.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

template <typename Strategy>
void refuse_pairs_of(const Spec& spec, const Cell& cell) {
  if (spec.name() == Strategy::kNeutral) return;
  for (const Refusal& refusal : Registry<Strategy>::instance().find(spec.name()).refuses)
    if (Spec::parse_composition(axis_value(cell, refusal.axis)).name() == refusal.name &&
        (!refusal.when || refusal.when(spec)))
      throw NotSupported(fmt::format("{}={} cannot be combined with {}={}: {}", Strategy::kKind,
                                     spec.to_string(), refusal.axis, refusal.name, refusal.why));
}

void refuse_pairs(const Cell& cell) {
  refuse_pairs_of<PruningStrategy>(cell.pruning, cell);
  refuse_pairs_of<PrecisionStrategy>(cell.precision, cell);
  refuse_pairs_of<CheckpointingStrategy>(cell.checkpointing, cell);
  refuse_pairs_of<OptimizerStrategy>(cell.optimizer, cell);
  refuse_pairs_of<ExecutionStrategy>(cell.execution, cell);
}

// Applies the passes of a cell and records which of them engaged.
class Passes {
 public:
  explicit Passes(const Cell& cell) : cell_(cell) {}

  Program with_gradients(Program forward) {
    Program program = apply<PruningStrategy>(std::move(forward), cell_.pruning);
    program = differentiate(apply<PrecisionStrategy>(std::move(program), cell_.precision));
    program = apply_to_gradients<PrecisionStrategy>(std::move(program), cell_.precision);
    return apply<CheckpointingStrategy>(std::move(program), cell_.checkpointing);
  }
  Program with_update(Program program) {
    program = apply<OptimizerStrategy>(std::move(program), cell_.optimizer);
    program = finish_pass<PrecisionStrategy>(std::move(program), cell_.precision);
    return finish_pass<PruningStrategy>(std::move(program), cell_.pruning);
  }
  Program executed(Program lowered) {
    Program program = apply<ExecutionStrategy>(std::move(lowered), cell_.execution);
    validate(program);
    return program;
  }

  Reason why_not_engaged() const {
    for (const auto& [axis, reason] : reasons_)
      if (reason) return reason;
    return std::nullopt;
  }

 private:
  template <typename Strategy>
  Program apply(Program program, const Spec& spec) {
    if (spec.name() == Strategy::kNeutral) return apply_pass<Strategy>(std::move(program), spec);
    Program after = apply_pass<Strategy>(program, spec);
    if (const auto& shows = Registry<Strategy>::instance().find(spec.name()).why_not_engaged) {
      const auto [found, first] = reasons_.try_emplace(Strategy::kKind);
      if (first || found->second) found->second = shows(spec, program, after);
    }
    return after;
  }

  const Cell& cell_;
  std::map<std::string_view, Reason> reasons_;  // by axis; absent once a pass has engaged
};

// Adds one forward pass of a step: unchanged, or once per micro-batch with the update after the
// last.
template <typename Lower>
void add_micro_batches(TrainingPlan::Step& step, Program program, std::size_t first_input,
                       const Cell& cell, Passes& passes, Lower lower) {
  const auto count = static_cast<std::size_t>(micro_batches_of(cell.accumulation));
  const auto add = [&](Program made, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      step.executions.push_back({step.programs.size(), i, first_input});
    step.programs.push_back(passes.executed(lower(std::move(made))));
  };
  if (count == 1) {
    add(passes.with_update(std::move(program)), 0, 1);
  } else {
    const auto& accumulation =
        Registry<AccumulationStrategy>::instance().find(cell.accumulation.name());
    add(accumulation.apply(program, cell.accumulation, MicroBatch::first), 0, 1);
    if (count > 2)
      add(accumulation.apply(program, cell.accumulation, MicroBatch::middle), 1, count - 1);
    program = accumulation.apply(std::move(program), cell.accumulation, MicroBatch::last);
    add(passes.with_update(std::move(program)), count - 1, count);
  }
  step.feeding.push_back(step.programs.size() - 1);
}

void add_whole(TrainingPlan::Step& step, Program program) {
  step.feeding.push_back(step.programs.size());
  step.executions.push_back({step.programs.size(), 0, 0});
  step.programs.push_back(std::move(program));
}

// A workload that is not trained has nothing to prune, checkpoint or update.
void refuse_passes(const Cell& cell) {
  const Cell usual;
  for (const char* axis : {"accumulation", "checkpointing", "precision", "pruning", "execution"})
    if (axis_value(cell, axis) != axis_value(usual, axis))
      throw NotSupported(fmt::format("{} is replayed as it was recorded, so {}={} cannot change it",
                                     cell.workload.name(), axis, axis_value(cell, axis)));
}

// Returns the most micro-batches of a step in use at a time, each from its first reader to its
// last.
std::size_t batches_at_a_time(const TrainingPlan::Step& step) {
  std::map<std::size_t, std::size_t> last_reader;  // by micro-batch
  for (std::size_t i = 0; i < step.executions.size(); ++i)
    last_reader[step.executions[i].micro_batch] = i;
  std::set<std::size_t> in_use;
  std::size_t most = 0;
  for (std::size_t i = 0; i < step.executions.size(); ++i) {
    const std::size_t batch = step.executions[i].micro_batch;
    in_use.insert(batch);
    most = std::max(most, in_use.size());
    if (last_reader[batch] == i) in_use.erase(batch);
  }
  return most;
}

bool is_staged(const TrainingPlan& plan, const Spec& pipeline) {
  const std::size_t lent = staged_batches(pipeline);
  if (lent == 0) return false;
  if (const std::size_t needed = batches_at_a_time(plan.usual()); lent < needed)
    throw NotSupported(
        fmt::format("pipeline {}: networks take turns over the micro-batches of a step and keep {} "
                    "of them at a time; stage at least as many",
                    pipeline.to_string(), needed));
  return true;
}

}  // namespace

TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules) {
  TrainingPlan plan;
  PersistentLayouts layouts;
  refuse_pairs(cell);
  if (!workload.is_trained()) refuse_passes(cell);
  Passes passes(cell);
  plan.micro_batches = micro_batches_of(cell.accumulation);
  for (auto& forwards : workload.training_shapes()) {
    TrainingPlan::Step& step = plan.shapes.emplace_back();
    if (!workload.is_trained()) {
      for (Program& whole : forwards) add_whole(step, lower(std::move(whole), rules, layouts));
      continue;
    }
    std::size_t first_input = 0;
    for (Program& forward : forwards) {
      const std::size_t inputs = forward.inputs.size();
      add_micro_batches(step, passes.with_gradients(std::move(forward)), first_input, cell, passes,
                        [&](Program program) { return lower(std::move(program), rules, layouts); });
      first_input += inputs;
    }
  }
  for (std::size_t shape = 1; shape < plan.shapes.size(); ++shape)
    if (plan.inputs(shape).size() != plan.inputs().size())
      throw Error("the shapes of a training step take different numbers of inputs");
  plan.shape_cycle = workload.shape_cycle();
  if (auto evaluation = workload.evaluation())
    plan.evaluate =
        lower(apply_pass<PruningStrategy>(std::move(*evaluation), cell.pruning), rules, layouts);
  plan.evaluation_interval = workload.evaluation_interval();
  plan.staged = is_staged(plan, cell.pipeline);
  plan.not_engaged = passes.why_not_engaged();
  return plan;
}

std::size_t TrainingPlan::shape_of(int step) const {
  return shape_cycle[static_cast<std::size_t>(step - 1) % shape_cycle.size()];
}

bool TrainingPlan::evaluates_after(int step) const {
  return evaluation_interval > 0 && step % evaluation_interval == 0;
}

std::vector<const Program*> TrainingPlan::programs() const {
  std::vector<const Program*> result;
  for (const Step& step : shapes)
    for (const Program& program : step.programs) result.push_back(&program);
  if (evaluate) result.push_back(&*evaluate);
  return result;
}

std::vector<const Program*> TrainingPlan::programs_of(int steps) const {
  std::vector<const Program*> result;
  std::set<std::size_t> seen;
  for (int step = 1; step <= steps; ++step)
    if (seen.insert(shape_of(step)).second)
      for (const Program& program : shapes[shape_of(step)].programs) result.push_back(&program);
  if (evaluation_interval > 0 && steps >= evaluation_interval) result.push_back(&*evaluate);
  return result;
}

std::vector<const Value*> TrainingPlan::persistent_values() const {
  std::vector<const Value*> result;
  std::set<std::string> seen;
  for (const Program& program : usual().programs)
    for (const Value& value : program.values)
      if (value.persistent && seen.insert(value.name).second) result.push_back(&value);
  return result;
}

std::vector<const Value*> TrainingPlan::inputs(std::size_t shape) const {
  std::vector<const Value*> result;
  const Step& step = shapes[shape];
  for (const std::size_t feeding : step.feeding)
    for (const ValueId id : step.programs[feeding].inputs)
      result.push_back(&step.programs[feeding].value(id));
  return result;
}

std::vector<Bytes> TrainingPlan::input_bytes(std::uint64_t micro_batch) const {
  const std::uint64_t step = micro_batch / static_cast<std::uint64_t>(micro_batches);
  std::vector<Bytes> bytes;
  for (const Value* value : inputs(shape_cycle[step % shape_cycle.size()]))
    bytes.push_back(static_cast<Bytes>(element_count(value->shape)) * size_of(value->dtype));
  return bytes;
}

}  // namespace headroom
