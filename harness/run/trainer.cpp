#include "harness/run/trainer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <numbers>

#include "harness/base/error.h"
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

// Box–Muller; the same on every standard library up to the last bit of its log and cos.
double normal(std::mt19937_64& random) {
  const double u = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
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
  plan.train = lower(apply_optimizer(differentiate(workload.training_forward()), cell.optimizer),
                     rules, layouts);
  if (auto evaluation = workload.evaluation())
    plan.evaluate = lower(std::move(*evaluation), rules, layouts);
  return plan;
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
  if (device.computes()) train_compute_ = device.compile(plan.train);
  if (device.computes() && plan.evaluate) evaluate_compute_ = device.compile(*plan.evaluate);
  for (const ValueId id : plan.train.inputs)
    batch_.emplace_back(data_ ? plain_bytes(plan.train.value(id)) : 0);
  try {
    initialise(plan.train, seed);
    if (plan.evaluate) initialise(*plan.evaluate, seed);
  } catch (...) {
    for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
    throw;
  }
  train_ = std::make_unique<Executor>(plan.train, train_compute_.get(), allocator_, recorder_,
                                      persistent_, injection_);
  if (plan.evaluate)
    evaluate_ = std::make_unique<Executor>(*plan.evaluate, evaluate_compute_.get(), allocator_,
                                           recorder_, persistent_);
}

Trainer::~Trainer() {
  for (const auto& [name, block] : persistent_) allocator_.deallocate(block);
}

void Trainer::initialise(const Program& program, std::uint64_t seed) {
  recorder_.enter_op(kNoOp, Phase::initialize, recorder_.elapsed_ns());
  for (const Value& value : program.values) {
    if (!value.persistent || persistent_.contains(value.name)) continue;
    const Block block = allocator_.allocate(
        value.bytes, {.role = value.role, .phase = Phase::initialize, .persistent = true});
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
  const Program& program = plan_.train;
  std::size_t next_input = 0;
  train_->run(
      [&](ValueId id, std::byte* data) {
        if (data_) device_.write(program.value(id), data, batch_[next_input++]);
      },
      [&](ValueId id, std::byte* data) {
        if (!device_.computes() || id != program.loss) return;
        float loss = 0;
        device_.read(program.value(id), data, std::as_writable_bytes(std::span(&loss, 1)));
        result.loss = loss;
      });
  device_.synchronize();
  if (injection_ != nullptr) injection_->end_step(Clock::now() - start);
  allocator_.synchronized();
  result.time_ns = elapsed_ns(start);
  return result;
}

double Trainer::evaluate(int batches) {
  if (!evaluate_ || !data_) throw Error("this workload has nothing to evaluate");
  const Program& program = *plan_.evaluate;
  double correct = 0;
  double seen = 0;
  data_->restart_held_out();
  std::vector<std::span<std::byte>> slots(batch_.begin(), batch_.end());
  for (int i = 0; i < batches && data_->next_held_out_batch(slots); ++i) {
    std::size_t next_input = 0;
    evaluate_->run(
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
