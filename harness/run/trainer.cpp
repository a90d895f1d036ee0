#include "harness/run/trainer.h"

#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/random.h"
#include "harness/control/injection.h"
#include "harness/program/lowering.h"
#include "harness/program/pass.h"
#include "harness/run/accumulation.h"
#include "harness/run/axes.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t elapsed_ns(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

Bytes plain_bytes(const Value& value) {
  return static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
}

// The value's name picks its own stream of the seed, so that adding a layer leaves the
// others' initial weights alone.
std::mt19937_64 stream_of(std::uint64_t seed, const std::string& name) {
  std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(seed),
                                      static_cast<std::uint32_t>(seed >> 32)};
  words.insert(words.end(), name.begin(), name.end());
  std::seed_seq sequence(words.begin(), words.end());
  return std::mt19937_64(sequence);
}

std::vector<std::byte> initial_contents(const Value& value, std::uint64_t seed) {
  std::vector<std::byte> contents(plain_bytes(value));
  if (value.initializer.parameter == 0) return contents;
  if (value.dtype != DType::f32)
    throw Error("only f32 values are initialised with numbers, '" + value.name + "' is not");
  auto random = stream_of(seed, value.name);
  const double parameter = value.initializer.parameter;
  std::vector<float> numbers(static_cast<std::size_t>(element_count(value.shape)),
                             static_cast<float>(parameter));
  if (value.initializer.fill == Fill::normal) {
    for (float& number : numbers) number = static_cast<float>(parameter * normal(random));
  }
  std::memcpy(contents.data(), numbers.data(), contents.size());
  return contents;
}

}  // namespace

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

// Applies the passes of a cell and remembers which did what its name says.
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
    return finish_pass<PruningStrategy>(std::move(program), cell_.pruning);
  }
  Program executed(Program program) {
    return apply<ExecutionStrategy>(std::move(program), cell_.execution);
  }

  std::string why_not_engaged() const {
    for (const auto& [axis, reason] : reasons_)
      if (!reason.empty()) return reason;
    return "";
  }

 private:
  template <typename Strategy>
  Program apply(Program program, const Spec& spec) {
    if (spec.name() == Strategy::kNeutral) return apply_pass<Strategy>(std::move(program), spec);
    Program after = apply_pass<Strategy>(program, spec);
    if (const auto& shows = Registry<Strategy>::instance().find(spec.name()).why_not_engaged) {
      const auto [found, first] = reasons_.try_emplace(Strategy::kKind);
      if (first || !found->second.empty()) found->second = shows(spec, program, after);
    }
    return after;
  }

  const Cell& cell_;
  std::map<std::string_view, std::string> reasons_;  // by axis; "" from the first that engaged on
};

// One forward pass of a step: as it is, or once per micro-batch with the update after the last.
template <typename Lower>
void add_micro_batches(TrainingPlan::Step& step, Program program, std::size_t first_input,
                       const Cell& cell, Passes& passes, Lower lower) {
  const auto count = static_cast<std::size_t>(micro_batches_of(cell.accumulation));
  const auto add = [&](Program made, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      step.runs.push_back({step.programs.size(), i, first_input});
    step.programs.push_back(lower(passes.executed(std::move(made))));
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
  step.runs.push_back({step.programs.size(), 0, 0});
  step.programs.push_back(std::move(program));
}

// What is not trained has nothing to prune, to checkpoint or to update.
void refuse_passes(const Cell& cell) {
  const Cell usual;
  for (const char* axis : {"accumulation", "checkpointing", "precision", "pruning", "execution"})
    if (axis_value(cell, axis) != axis_value(usual, axis))
      throw NotSupported(fmt::format("{} is replayed as it was recorded: {}={} cannot change it",
                                     cell.workload.name(), axis, axis_value(cell, axis)));
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
    bytes.push_back(plain_bytes(*value));
  return bytes;
}

Trainer::Trainer(const TrainingPlan& plan, Device& device, Allocator& allocator,
                 TraceRecorder& recorder, std::unique_ptr<BatchSource> data, std::uint64_t seed,
                 Injection* injection)
    : plan_(plan),
      device_(device),
      allocator_(allocator),
      recorder_(recorder),
      data_(std::move(data)),
      injection_(injection) {
  for (const Program* program : plan.programs())
    runnables_.push_back(
        {program, device.computes() ? device.compile(*program) : nullptr, nullptr});
  batches_.resize(static_cast<std::size_t>(plan.micro_batches), HostBatch(plan.inputs().size()));
  for (std::size_t shape = 0; shape < plan.shapes.size(); ++shape) {
    inputs_.push_back(plan.inputs(shape));
    if (data_)
      for (HostBatch& batch : batches_) slots_of(inputs_.back(), batch);  // takes the memory now
  }
  if (plan.evaluate)
    for (const ValueId id : plan.evaluate->inputs)
      evaluation_inputs_.push_back(&plan.evaluate->value(id));
  try {
    for (const Program* program : plan.programs()) initialise(*program, seed);
  } catch (...) {
    for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
    throw;
  }
  std::uint32_t first_op = 0;
  for (Runnable& runnable : runnables_) {
    const Program& program = *runnable.program;
    Injection* injected = plan.evaluate && &program == &*plan.evaluate ? nullptr : injection_;
    runnable.executor = std::make_unique<Executor>(program, runnable.compute.get(), allocator_,
                                                   recorder_, persistent_, injected, first_op);
    first_op += static_cast<std::uint32_t>(program.ops.size());
  }
  for (std::size_t first = 0; const TrainingPlan::Step& step : plan.shapes) {
    first_runnable_.push_back(first);
    first += step.programs.size();
  }
}

Trainer::~Trainer() {
  for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
}

void Trainer::initialise(const Program& program, std::uint64_t seed) {
  recorder_.enter_op(kNoOp, Phase::initialize, recorder_.elapsed_ns());
  for (const Value& value : program.values) {
    if (!value.persistent || persistent_.contains(value.name)) continue;
    const Block block = allocator_.allocate(
        value.bytes,
        {.role = value.role, .phase = Phase::initialize, .persistent = true, .name = value.name});
    persistent_[value.name] = block;
    if (device_.computes()) device_.write(value, block.data, initial_contents(value, seed));
  }
}

// Cut to these inputs' sizes; the memory stays with the buffers.
std::vector<std::span<std::byte>> Trainer::slots_of(std::span<const Value* const> inputs,
                                                    HostBatch& batch) {
  for (std::size_t i = 0; i < inputs.size(); ++i) batch[i].resize(plain_bytes(*inputs[i]));
  return {batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(inputs.size())};
}

void Trainer::load_batches(std::span<const Value* const> inputs) {
  for (HostBatch& batch : batches_) data_->next_training_batch(slots_of(inputs, batch));
}

float Trainer::run(Runnable& runnable, const HostBatch& batch, std::size_t first_input) {
  const Program& program = *runnable.program;
  float result = 0;
  runnable.executor->run(
      [&](ValueId id, std::byte* data) {
        if (data_) device_.write(program.value(id), data, batch[first_input++]);
      },
      [&](ValueId id, std::byte* data) {
        if (!device_.computes() || id != program.results.front()) return;
        device_.read(program.value(id), data, std::as_writable_bytes(std::span(&result, 1)));
      });
  return result;
}

StepResult Trainer::step() {
  StepResult result;
  const auto start = Clock::now();
  const std::size_t shape = plan_.shape_of(++steps_);
  if (data_) {
    load_batches(inputs_[shape]);
    result.stall_ns = elapsed_ns(start);
  }
  for (const TrainingPlan::Run& part : plan_.shapes[shape].runs) {
    Runnable& runnable = runnables_[first_runnable_[shape] + part.program];
    const float loss = run(runnable, batches_[part.micro_batch], part.first_input);
    if (part.first_input == 0) result.loss += static_cast<double>(loss) / plan_.micro_batches;
  }
  device_.synchronize();
  if (injection_ != nullptr) injection_->end_step(Clock::now() - start);
  allocator_.synchronized();
  result.time_ns = elapsed_ns(start);
  if (plan_.evaluates_after(steps_)) evaluate_between_steps();
  return result;
}

// For what it does to memory: the score of one batch tells nothing, and is not kept.
void Trainer::evaluate_between_steps() {
  if (data_) {
    data_->restart_held_out();
    data_->next_held_out_batch(slots_of(evaluation_inputs_, batches_.front()));
  }
  run(runnables_.back(), batches_.front(), 0);
  device_.synchronize();
  allocator_.synchronized();
}

double Trainer::evaluate(int batches) {
  if (!plan_.evaluate || !data_) throw Error("this workload has nothing to evaluate");
  double correct = 0;
  double seen = 0;
  data_->restart_held_out();
  const auto slots = slots_of(evaluation_inputs_, batches_.front());
  for (int i = 0; i < batches && data_->next_held_out_batch(slots); ++i) {
    correct += run(runnables_.back(), batches_.front(), 0);
    seen += static_cast<double>(evaluation_inputs_.front()->shape[0]);
  }
  if (seen == 0) throw Error("the data set has no whole held-out batch");
  return correct / seen;
}

std::vector<std::byte> Trainer::read_persistent(const Value& value) const {
  std::vector<std::byte> plain(plain_bytes(value));
  device_.read(value, persistent_.at(value.name).data, plain);
  return plain;
}

}  // namespace headroom
