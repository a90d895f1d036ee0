// Random stacks of the registered passes over random networks: gradients are those of the loss,
// weights change as in the plain step, and meta counts the bytes that host takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/memory/recording_allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/axes.h"
#include "harness/program/captured.h"
#include "harness/program/pass.h"
#include "harness/training/trainer.h"
#include "harness/workload/pipeline.h"
#include "tests/unit/support/finite_differences.h"
#include "tests/unit/support/random_net.h"

namespace headroom::pass_stack_test {
namespace {

using testing::NetTraits;
using testing::RandomNet;
using testing::Tensor;
using testing::Tensors;

constexpr std::int64_t kBatch = 4;
constexpr std::uint64_t kWeights = 5;  // seed of the Trainer
constexpr int kSteps = 2;

// A random net, and a stack of passes over it.
struct Draw {
  std::uint64_t seed;
  Cell cell;

  std::int64_t parts() const { return micro_batches_of(cell.accumulation); }
  NetTraits traits() const {
    const bool by_labels = cell.accumulation.text("weigh", "") == "labels";
    return {.across_samples = parts() == 1, .ignored_labels = parts() == 1 || by_labels};
  }
  RandomNet net() const { return {seed, kBatch / parts(), traits()}; }
  TrainingPlan plan(const char* rules) const { return plan_training(net(), cell, rules); }
  // Returns the same optimizer, clipping and batch without the other passes.
  Draw plain() const {
    auto parameters = cell.optimizer.parameters();
    parameters.erase("step");
    parameters.erase("gradients");
    parameters.erase("loop");
    Draw result{.seed = seed, .cell = {}};
    result.cell.optimizer = Spec(cell.optimizer.name(), parameters);
    return result;
  }
  // Like plain(), with the traits of this draw.
  TrainingPlan plain_plan(const char* rules) const {
    return plan_training(RandomNet(seed, kBatch, traits()), plain().cell, rules);
  }
  std::string text() const {
    std::string text = "net " + std::to_string(seed);
    for (const char* axis : {"accumulation", "checkpointing", "optimizer", "execution"})
      text += std::string(" ") + axis + "=" + axis_value(cell, axis);
    return text;
  }
};

template <typename Strategy>
std::vector<std::string> choices() {
  std::set<std::string> result;
  if (!Strategy::kNeutral.empty()) result.insert(std::string(Strategy::kNeutral));
  for (const auto& [name, strategy] : Registry<Strategy>::instance().all()) {
    result.insert(strategy.examples.begin(), strategy.examples.end());
    if (Strategy::kNeutral.empty()) result.insert(name);
  }
  return {result.begin(), result.end()};
}

Draw draw(std::mt19937_64& random) {
  Draw result{.seed = random(), .cell = {}};
  const auto choose = [&](const char* axis, const std::vector<std::string>& from) {
    set_axis(result.cell, axis, from[random() % from.size()]);
  };
  choose("accumulation", choices<AccumulationStrategy>());
  choose("checkpointing", choices<CheckpointingStrategy>());
  choose("optimizer", choices<OptimizerStrategy>());
  choose("execution", choices<ExecutionStrategy>());
  return result;
}

Tensor to_double(const Value& value, const std::vector<std::byte>& bytes) {
  if (value.dtype == DType::u8) {
    Tensor tensor;
    for (const std::byte byte : bytes) tensor.push_back(std::to_integer<int>(byte));
    return tensor;
  }
  Tensor tensor(bytes.size() / 4);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    std::int32_t whole = 0;
    float real = 0;
    std::memcpy(&whole, bytes.data() + 4 * i, 4);
    std::memcpy(&real, bytes.data() + 4 * i, 4);
    tensor[i] = value.dtype == DType::s32 ? whole : static_cast<double>(real);
  }
  return tensor;
}

using Named = std::map<std::string, Tensor>;

// Runs the steps of a plan in double, op by op as the reference defines them.
struct DoubleSteps {
  const TrainingPlan& plan;
  Named persistent;
  std::unique_ptr<BatchSource> data;
  Named gradients = {};  // by weight, as the last update found them

  std::vector<Tensor> next_batch() const {
    const auto inputs = plan.inputs();
    std::vector<std::vector<std::byte>> bytes;
    for (const Value* value : inputs)
      bytes.emplace_back(static_cast<std::size_t>(element_count(value->shape)) * 4);
    const std::vector<std::span<std::byte>> buffers(bytes.begin(), bytes.end());
    data->next_training_batch(buffers);
    std::vector<Tensor> batch;
    for (std::size_t i = 0; i < bytes.size(); ++i) batch.push_back(to_double(*inputs[i], bytes[i]));
    return batch;
  }

  void step() {
    for (const TrainingPlan::Execution& execution : plan.usual().executions) {
      const Program& program = plan.usual().programs[execution.program];
      Tensors tensors(program);
      const std::vector<Tensor> batch = next_batch();
      for (std::size_t i = 0; i < program.inputs.size(); ++i)
        tensors[program.inputs[i]] = batch[execution.first_input + i];
      for (ValueId id = 0; id < program.values.size(); ++id)
        if (program.value(id).persistent) tensors[id] = persistent.at(program.value(id).name);
      testing::execute_reference(program, tensors);
      for (ValueId id = 0; id < program.values.size(); ++id)
        if (program.value(id).persistent) persistent[program.value(id).name] = tensors[id];
      gradients.clear();
      for (const auto& [weight, gradient] : program.gradients)
        gradients[program.value(weight).name] = tensors[gradient];
    }
  }
};

// Runs the steps of a plan on a device, under an allocator that overwrites freed memory.
class DeviceSteps {
 public:
  DeviceSteps(const TrainingPlan& plan, const char* device, std::unique_ptr<BatchSource> data)
      : plan_(plan),
        device_(Registry<DeviceKind>::instance().find(device).create(
            Spec(device, {{"capacity", "64MiB"}}))),
        allocator_(make_allocator(Spec::parse_composition("poison|malloc"), device_->memory())),
        trainer_(plan, *device_, recorded_, recorder_,
                 device_->computes() ? std::move(data) : nullptr, kWeights) {}

  void step() { trainer_.step(); }
  Named persistent(Role role) const {
    Named result;
    for (const Value* value : plan_.persistent_values())
      if (value->role == role)
        result[value->name] = to_double(*value, trainer_.read_persistent(*value));
    return result;
  }
  Named persistent() const {
    Named result;
    for (const Role role : {Role::weight, Role::statistic, Role::gradient, Role::optimizer_state})
      result.merge(persistent(role));
    return result;
  }
  Bytes peak_requested() const {
    Bytes live = 0, peak = 0;
    for (const TraceEvent& event : recorder_.trace().events) {
      if (event.kind == EventKind::alloc) peak = std::max(peak, live += event.requested);
      if (event.kind == EventKind::free) live -= event.requested;
    }
    return peak;
  }

 private:
  const TrainingPlan& plan_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> allocator_;
  TraceRecorder recorder_{0};
  RecordingAllocator recorded_{*allocator_, recorder_};
  Trainer trainer_;
};

// Checks some elements of every weight. Returns false if the loss has a kink near one of them.
bool expect_derivatives(const Program& forward, const Named& persistent, std::vector<Tensor> batch,
                        const Named& gradients, std::mt19937_64& random) {
  // Kinks are at least as steep as kTolerance; second derivatives stay below kTolerance/kStep =
  // 100, third ones far below 1e9, and 1e-15/kStep of rounding is far below kTolerance.
  constexpr double kStep = 1e-7, kTolerance = 1e-5;
  constexpr std::size_t kElements = 6;
  Tensors tensors(forward);
  for (std::size_t i = 0; i < batch.size(); ++i) tensors[forward.inputs[i]] = std::move(batch[i]);
  for (ValueId id = 0; id < forward.values.size(); ++id)
    if (forward.value(id).persistent) tensors[id] = persistent.at(forward.value(id).name);
  for (ValueId id = 0; id < forward.values.size(); ++id) {
    if (forward.value(id).role != Role::weight) continue;
    const std::string& name = forward.value(id).name;
    std::vector<std::size_t> elements;
    for (std::size_t i = 0; i < kElements; ++i) elements.push_back(random() % tensors[id].size());
    const Tensor slopes =
        testing::finite_differences(tensors[id], elements, kStep, kTolerance, [&] {
          testing::execute_reference(forward, tensors);
          return tensors[forward.loss][0];
        });
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      if (std::isnan(slopes[i])) return false;
      EXPECT_NEAR(gradients.at(name)[elements[i]], slopes[i],
                  kTolerance * (1 + std::abs(slopes[i])))
          << name << " at " << elements[i];
    }
  }
  return true;
}

// Clips by definition: no gradient grows, and their common norm is at most the requested one.
Named clipped(Named gradients, const Spec& optimizer) {
  if (!optimizer.has("clip_norm")) return gradients;
  double squares = 0;
  for (const auto& [name, gradient] : gradients)
    for (const double g : gradient) squares += g * g;
  const double factor = std::min(1.0, optimizer.number("clip_norm", 0) / std::sqrt(squares));
  for (auto& [name, gradient] : gradients)
    for (double& g : gradient) g *= factor;
  return gradients;
}

void expect_near(const Named& found, const Named& wanted, double tolerance,
                 const std::string& what) {
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(found.contains(name)) << what << ": " << name;
    const Tensor& other = found.at(name);
    ASSERT_EQ(other.size(), tensor.size()) << what << ": " << name;
    for (std::size_t i = 0; i < tensor.size(); ++i)
      ASSERT_NEAR(other[i], tensor[i], tolerance * (1 + std::abs(tensor[i])))
          << what << ": " << name << " at " << i;
  }
}

Named only_sums(const Named& persistent) {
  constexpr std::string_view kSuffix = ".gradient_sum";
  Named sums;
  for (const auto& [name, tensor] : persistent)
    if (name.ends_with(kSuffix)) sums[name.substr(0, name.size() - kSuffix.size())] = tensor;
  return sums;
}

// Returns false when nothing was checked because the loss has a kink next to the weights.
bool judge(const Draw& drawn, std::mt19937_64& random) {
  const TrainingPlan plan = drawn.plan("dense"), plain = drawn.plain_plan("dense");
  const TrainingPlan on_device = drawn.plan("onednn"), plain_on_device = drawn.plain_plan("onednn");
  const RandomNet net(drawn.seed, kBatch, drawn.traits());
  DeviceSteps host(on_device, "host", drawn.net().open_data(drawn.seed));
  DeviceSteps plain_host(plain_on_device, "host", net.open_data(drawn.seed));

  DoubleSteps steps{plan, host.persistent(), drawn.net().open_data(drawn.seed)};
  DoubleSteps plain_steps{plain, plain_host.persistent(), net.open_data(drawn.seed)};
  auto parameters = drawn.plain().cell.optimizer.parameters();
  parameters.erase("clip_norm");
  Cell unclipped;
  unclipped.optimizer = Spec(drawn.cell.optimizer.name(), parameters);
  const TrainingPlan bare = plan_training(net, unclipped, "dense");
  DoubleSteps step{bare, plain_steps.persistent, net.open_data(drawn.seed)};
  step.step();
  if (!expect_derivatives(net.training_forward(), plain_steps.persistent,
                          DoubleSteps{bare, {}, net.open_data(drawn.seed)}.next_batch(),
                          step.gradients, random))
    return false;

  steps.step();
  plain_steps.step();
  EXPECT_EQ(steps.gradients.size(), step.gradients.size());
  // Only the order of sums differs: about 1e2 roundings of 1e-16.
  expect_near(steps.gradients, clipped(step.gradients, drawn.cell.optimizer), 1e-12, "gradient");
  host.step();
  // Single precision: sums of up to some hundred terms that may cancel.
  if (drawn.parts() > 1) expect_near(only_sums(host.persistent()), steps.gradients, 1e-4, "host");

  plain_host.step();
  host.step();
  plain_host.step();
  steps.step();
  plain_steps.step();
  // Optimizers may divide by numbers as small as 1e-8.
  for (const auto& [name, weight] : plain_host.persistent(Role::weight))
    expect_near(steps.persistent, {{name, plain_steps.persistent.at(name)}}, 1e-8, "weights");
  if (drawn.parts() == 1) {
    EXPECT_EQ(host.persistent(Role::weight), plain_host.persistent(Role::weight));
  }

  DeviceSteps meta(on_device, "meta", nullptr);
  for (int step = 0; step < kSteps; ++step) meta.step();
  EXPECT_EQ(meta.peak_requested(), host.peak_requested());
  const Bytes live = peak_live_bytes(on_device.programs_of(kSteps));
  // The places of all Programs, gaps included.
  if (captured_into(on_device.usual().programs.front()))
    EXPECT_GE(meta.peak_requested(), live);
  else
    EXPECT_EQ(meta.peak_requested(), live);
  return true;
}

TEST(AnyStackOfPasses, gives_the_derivatives_of_the_loss_and_takes_on_host_what_meta_counts) {
  constexpr int kRounds = 25;
  std::mt19937_64 random(testing::test_seed());
  int judged = 0;
  for (int draws = 0; judged < kRounds; ++draws) {
    ASSERT_LT(draws, 10 * kRounds) << "nearly everything is refused";
    const Draw drawn = draw(random);
    SCOPED_TRACE(drawn.text());
    try {
      judged += judge(drawn, random) ? 1 : 0;
    } catch (const NotSupported&) {  // tests below check these pairs
      continue;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// A stage of a pipeline may need a number to be valid.
std::string refused_value(const Refusal& refusal) {
  if (refusal.axis != "pipeline") return refusal.name;
  return Registry<StageKind>::instance().find(refusal.name).examples.front();
}

template <typename Strategy>
void expect_refusals() {
  const RandomNet net(1, kBatch, {});
  for (const auto& [name, strategy] : Registry<Strategy>::instance().all()) {
    for (const Refusal& refusal : strategy.refuses) {
      for (const std::string& example : strategy.examples) {
        if (refusal.when && !refusal.when(Spec::parse(example))) continue;
        Cell cell;
        set_axis(cell, Strategy::kKind, example);
        set_axis(cell, refusal.axis, refused_value(refusal));
        SCOPED_TRACE(example + " with " + refusal.name);
        try {
          plan_training(net, cell, "dense");
          FAIL() << "is planned";
        } catch (const NotSupported& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr(refusal.why));
        }
      }
    }
  }
}

TEST(AnyStackOfPasses, is_refused_where_a_pass_in_it_refuses_another) {
  expect_refusals<PruningStrategy>();
  expect_refusals<PrecisionStrategy>();
  expect_refusals<CheckpointingStrategy>();
  expect_refusals<OptimizerStrategy>();
  expect_refusals<ExecutionStrategy>();
}

}  // namespace
}  // namespace headroom::pass_stack_test
