#include "harness/run/trainer.h"

#include <chrono>
#include <cstring>
#include <set>
#include <string>

#include "harness/base/error.h"
#include "harness/base/random.h"
#include "harness/control/injection.h"
#include "harness/program/lowering.h"

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

TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules) {
  TrainingPlan plan;
  PersistentLayouts layouts;
  for (Program& forward : workload.training_forwards())
    plan.train.push_back(
        lower(apply_optimizer(differentiate(std::move(forward)), cell.optimizer), rules, layouts));
  if (auto evaluation = workload.evaluation())
    plan.evaluate = lower(std::move(*evaluation), rules, layouts);
  return plan;
}

std::vector<const Program*> TrainingPlan::programs() const {
  std::vector<const Program*> result;
  for (const Program& program : train) result.push_back(&program);
  if (evaluate) result.push_back(&*evaluate);
  return result;
}

std::vector<const Value*> TrainingPlan::persistent_values() const {
  std::vector<const Value*> result;
  std::set<std::string> seen;
  for (const Program& program : train)
    for (const Value& value : program.values)
      if (value.persistent && seen.insert(value.name).second) result.push_back(&value);
  return result;
}

std::vector<const Value*> TrainingPlan::inputs() const {
  std::vector<const Value*> result;
  for (const Program& program : train)
    for (const ValueId id : program.inputs) result.push_back(&program.value(id));
  return result;
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
  for (const Value* value : plan.inputs()) batch_.emplace_back(data_ ? plain_bytes(*value) : 0);
  try {
    for (const Program* program : plan.programs()) initialise(*program, seed);
  } catch (...) {
    for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
    throw;
  }
  std::uint32_t first_op = 0;
  for (std::size_t i = 0; i < runnables_.size(); ++i) {
    Injection* injected = i < plan.train.size() ? injection_ : nullptr;  // not into evaluation
    const Program& program = *runnables_[i].program;
    runnables_[i].executor =
        std::make_unique<Executor>(program, runnables_[i].compute.get(), allocator_, recorder_,
                                   persistent_, injected, first_op);
    first_op += static_cast<std::uint32_t>(program.ops.size());
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

StepResult Trainer::step() {
  StepResult result;
  const auto start = Clock::now();
  if (data_) {
    std::vector<std::span<std::byte>> slots(batch_.begin(), batch_.end());
    data_->next_training_batch(slots);
    result.stall_ns = elapsed_ns(start);
  }
  std::size_t next_input = 0;
  for (std::size_t i = 0; i < plan_.train.size(); ++i) {
    const Program& program = plan_.train[i];
    runnables_[i].executor->run(
        [&](ValueId id, std::byte* data) {
          if (data_) device_.write(program.value(id), data, batch_[next_input++]);
        },
        [&](ValueId id, std::byte* data) {
          if (!device_.computes() || id != program.loss) return;
          float loss = 0;
          device_.read(program.value(id), data, std::as_writable_bytes(std::span(&loss, 1)));
          if (i == 0) result.loss = loss;
        });
  }
  device_.synchronize();
  if (injection_ != nullptr) injection_->end_step(Clock::now() - start);
  allocator_.synchronized();
  result.time_ns = elapsed_ns(start);
  return result;
}

double Trainer::evaluate(int batches) {
  if (!plan_.evaluate || !data_) throw Error("this workload has nothing to evaluate");
  const Program& program = *plan_.evaluate;
  double correct = 0;
  double seen = 0;
  data_->restart_held_out();
  std::vector<std::span<std::byte>> slots(batch_.begin(), batch_.end());
  for (int i = 0; i < batches && data_->next_held_out_batch(slots); ++i) {
    std::size_t next_input = 0;
    runnables_.back().executor->run(
        [&](ValueId id, std::byte* data) {
          device_.write(program.value(id), data, batch_[next_input++]);
        },
        [&](ValueId id, std::byte* data) {
          float count = 0;
          device_.read(program.value(id), data, std::as_writable_bytes(std::span(&count, 1)));
          correct += count;
        });
    seen += static_cast<double>(program.value(program.inputs[0]).shape[0]);
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
