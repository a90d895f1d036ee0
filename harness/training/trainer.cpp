#include "harness/training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/control/injection.h"
#include "harness/execution/captured_executor.h"
#include "harness/program/offload.h"
#include "harness/training/initial_contents.h"

namespace headroom {
namespace {

Bytes plain_bytes(const Value& value) {
  return static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
}

}  // namespace

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
    if (host_side_ == nullptr &&
        std::any_of(program->ops.begin(), program->ops.end(), is_transfer)) {
      host_memory_ = device.make_host_memory();
      host_side_ = std::make_unique<HostStore>(*host_memory_);
    }
  for (const Program* program : plan.programs())
    runnables_.push_back({program, device.computes() ? device.compile(*program) : nullptr, nullptr,
                          host_side_ ? count_offloaded(*program).moved : 0});
  batches_.resize(static_cast<std::size_t>(plan.micro_batches), HostBatch(plan.inputs().size()));
  lent_.resize(batches_.size());
  for (std::size_t shape = 0; shape < plan.shapes.size(); ++shape) {
    inputs_.push_back(plan.inputs(shape));
    if (data_ && !plan.staged)
      // Allocates the memory now.
      for (HostBatch& batch : batches_) slots_of(inputs_.back(), batch);
  }
  if (plan.evaluate)
    for (const ValueId id : plan.evaluate->inputs)
      evaluation_inputs_.push_back(&plan.evaluate->value(id));
  try {
    for (const Program* program : plan.programs()) initialise(*program, seed);
    pools_ = std::make_unique<CapturePools>(plan.programs(), allocator_, host_side_.get());
  } catch (...) {
    for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
    throw;
  }
  std::uint32_t first_op = 0;
  for (Runnable& runnable : runnables_) {
    runnable.executor = make_executor(runnable, first_op);
    first_op += static_cast<std::uint32_t>(runnable.program->ops.size());
  }
  for (std::size_t first = 0; const TrainingPlan::Step& step : plan.shapes) {
    first_runnable_.push_back(first);
    first += step.programs.size();
  }
}

// A device error here comes from an earlier kernel and has been reported.
Trainer::~Trainer() {
  try {
    device_.finish_staging();
  } catch (const Error&) {
  }
  for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
}

std::unique_ptr<ProgramExecutor> Trainer::make_executor(const Runnable& runnable,
                                                        std::uint32_t first_op) {
  const Program& program = *runnable.program;
  if (const CapturePools::Place* place = pools_->of(program))
    return std::make_unique<CapturedExecutor>(program, runnable.compute.get(), *place, persistent_);
  Injection* injected = plan_.evaluate && &program == &*plan_.evaluate ? nullptr : injection_;
  return std::make_unique<Executor>(program, runnable.compute.get(), allocator_, recorder_,
                                    persistent_, injected, first_op, host_side_.get());
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

// Resizes the buffers to these inputs; their capacity is kept.
std::vector<std::span<std::byte>> Trainer::slots_of(std::span<const Value* const> inputs,
                                                    HostBatch& batch) {
  for (std::size_t i = 0; i < inputs.size(); ++i) batch[i].resize(plain_bytes(*inputs[i]));
  return {batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(inputs.size())};
}

void Trainer::load_batches(std::span<const Value* const> inputs) {
  for (HostBatch& batch : batches_) data_->next_training_batch(slots_of(inputs, batch));
}

float Trainer::run(Runnable& runnable, const HostBatch& batch, std::size_t first_input) {
  return execute(runnable, [&](ValueId id, std::byte* data) {
    if (data_) device_.write(runnable.program->value(id), data, batch[first_input++]);
  });
}

float Trainer::execute(Runnable& runnable, const ProgramExecutor::Transfer& feed,
                       const std::function<void()>& fed) {
  const Program& program = *runnable.program;
  float result = 0;
  offloaded_ += runnable.offloads;
  runnable.executor->run(
      feed,
      [&](ValueId id, std::byte* data) {
        if (!device_.computes() || id != program.results.front()) return;
        device_.read(program.value(id), data, std::as_writable_bytes(std::span(&result, 1)));
      },
      fed);
  return result;
}

const TrainingPlan::Execution& Trainer::execution_at(Place place) const {
  return plan_.shapes[plan_.shape_of(place.step)].executions[place.index];
}

Trainer::Runnable& Trainer::runnable_at(Place place) {
  return runnables_[first_runnable_[plan_.shape_of(place.step)] + execution_at(place).program];
}

Trainer::Place Trainer::after(Place place) const {
  const std::size_t count = plan_.shapes[plan_.shape_of(place.step)].executions.size();
  if (place.index + 1 < count) return {place.step, place.index + 1};
  return {place.step + 1, 0};
}

bool Trainer::is_last_reader(Place place) const {
  const auto& all = plan_.shapes[plan_.shape_of(place.step)].executions;
  return std::none_of(all.begin() + static_cast<std::ptrdiff_t>(place.index) + 1, all.end(),
                      [batch = all[place.index].micro_batch](const TrainingPlan::Execution& later) {
                        return later.micro_batch == batch;
                      });
}

void Trainer::stage(Place place) {
  const TrainingPlan::Execution& execution = execution_at(place);
  LentBatch& batch = lent_[execution.micro_batch];
  if (data_ && batch == nullptr) {
    const auto start = Clock::now();
    batch = data_->lend_training_batch();
    stall_ns_ += ns_since(start);
  }
  Runnable& runnable = runnable_at(place);
  std::size_t input = execution.first_input;
  runnable.executor->feed_ahead([&](ValueId id, std::byte* data) {
    if (data_) device_.stage(runnable.program->value(id), data, (*batch)[input++]);
  });
}

float Trainer::run_staged(Place place) {
  device_.finish_staging();
  if (is_last_reader(place)) lent_[execution_at(place).micro_batch] = nullptr;
  return execute(runnable_at(place), nullptr, [&] { stage(after(place)); });
}

StepResult Trainer::step() {
  StepResult result;
  const auto start = Clock::now();
  const std::size_t shape = plan_.shape_of(++steps_);
  stall_ns_ = 0;
  if (plan_.staged) {
    if (steps_ == 1) stage({steps_, 0});
  } else if (data_) {
    load_batches(inputs_[shape]);
    stall_ns_ = ns_since(start);
  }
  for (std::size_t i = 0; i < plan_.shapes[shape].executions.size(); ++i) {
    const Place place{steps_, i};
    const TrainingPlan::Execution& part = execution_at(place);
    const float loss = plan_.staged
                           ? run_staged(place)
                           : run(runnable_at(place), batches_[part.micro_batch], part.first_input);
    if (part.first_input == 0) result.loss += static_cast<double>(loss) / plan_.micro_batches;
  }
  result.stall_ns = stall_ns_;
  device_.synchronize();
  if (injection_ != nullptr) injection_->end_step(Clock::now() - start);
  allocator_.synchronized();
  result.time_ns = ns_since(start);
  if (plan_.evaluates_after(steps_)) evaluate_between_steps();
  return result;
}

// Evaluates for the effect on memory. The score of one batch says nothing and is discarded.
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

Reason Trainer::why_not_engaged() const {
  Reason why;
  for (const Runnable& runnable : runnables_) {
    if (plan_.evaluate && runnable.program == &*plan_.evaluate) continue;
    why = runnable.executor->why_not_engaged();
    if (!why) break;
  }
  return why;
}

void Trainer::write_persistent(const Value& value, std::span<const std::byte> plain) {
  device_.write(value, persistent_.at(value.name).data, plain);
}

std::vector<std::byte> Trainer::read_persistent(const Value& value) const {
  std::vector<std::byte> plain(plain_bytes(value));
  device_.read(value, persistent_.at(value.name).data, plain);
  return plain;
}

std::vector<float> Trainer::read_floats(const Value& value) const {
  const auto plain = read_persistent(value);
  std::vector<float> floats(plain.size() / sizeof(float));
  std::memcpy(floats.data(), plain.data(), plain.size());
  return floats;
}

}  // namespace headroom
