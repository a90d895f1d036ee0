// Tells where the time of a training step on the host goes: for each kind of operation its share of
// the step, its floating-point operations and bytes per second, and what shares of the machine's
// own ceilings these are. The ceilings are measured in the same process, before and after.
//   build/bench/roofline/roofline WORKLOAD [--steps N] [--each] [--optimizer SPEC] [--rules SPEC]
#include <fmt/format.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "harness/base/duration.h"
#include "harness/base/registry.h"
#include "harness/machine/probe.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/cell.h"
#include "harness/trace/recorder.h"
#include "harness/training/trainer.h"

namespace headroom {
namespace {

// Bytes per second that all threads together read and write while they scale one large array into
// another; the best of several rounds.
double memory_ceiling() {
  constexpr std::size_t kFloats = std::size_t{64} << 20U;
  std::vector<float> from(kFloats, 1.0F), to(kFloats, 0.0F);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < kFloats; ++i) to[i] = 0.5F * from[i];
    best = std::max(best, 2.0 * kFloats * sizeof(float) / seconds_since(start));
  }
  return best;
}

struct Ceilings {
  double flops = 0, bytes = 0;  // per second
};

Ceilings measure_ceilings() {
  return {.flops = 1e9 * probe_gflops(omp_get_max_threads()), .bytes = memory_ceiling()};
}

struct Cost {
  double seconds = 0, flops = 0, bytes = 0;
  int calls = 0;
};

// Costs of all ops that ran while `counting`, by the op's kind or name.
struct Costs {
  bool counting = false, each = false;
  std::map<std::string, Cost> by_name = {};
};

// Times each op of a compiled Program.
class TimedProgram final : public CompiledProgram {
 public:
  TimedProgram(std::unique_ptr<CompiledProgram> timed, const Program& program, Costs& costs)
      : timed_(std::move(timed)), costs_(costs) {
    for (const Op& op : program.ops) {
      names_.push_back(costs.each ? fmt::format("{} {}", op.kind, op.name) : op.kind);
      costs_of_one_.push_back(cost_of(op, program));
    }
  }

  void run(std::size_t index, const OpBuffers& buffers) override {
    const auto start = Clock::now();
    timed_->run(index, buffers);
    const double seconds = seconds_since(start);
    if (!costs_.counting) return;
    Cost& cost = costs_.by_name[names_[index]];
    cost.seconds += seconds;
    cost.flops += costs_of_one_[index].flops;
    cost.bytes += costs_of_one_[index].bytes;
    ++cost.calls;
  }

 private:
  // Bytes are those of operands and results, each counted once: the least that an op must move.
  static Cost cost_of(const Op& op, const Program& program) {
    Cost cost;
    std::vector<Value> inputs, outputs;
    for (const ValueId id : op.inputs)
      inputs.push_back(id == kNoValue ? Value{} : program.value(id));
    for (const ValueId id : op.outputs)
      outputs.push_back(id == kNoValue ? Value{} : program.value(id));
    for (const auto* values : {&inputs, &outputs})
      for (const Value& value : *values) cost.bytes += static_cast<double>(value.bytes);
    const auto& flops = Registry<OpDefinition>::instance().find(op.kind).flops;
    if (flops) cost.flops = flops(op, inputs, outputs);
    return cost;
  }

  std::unique_ptr<CompiledProgram> timed_;
  Costs& costs_;
  std::vector<std::string> names_;
  std::vector<Cost> costs_of_one_;
};

// The host, with every op timed.
class TimedDevice final : public Device {
 public:
  TimedDevice(std::unique_ptr<Device> timed, Costs& costs)
      : timed_(std::move(timed)), costs_(costs) {}
  DeviceMemory& memory() override { return timed_->memory(); }
  std::unique_ptr<DeviceMemory> make_host_memory() override { return timed_->make_host_memory(); }
  std::unique_ptr<CompiledProgram> compile(const Program& lowered) override {
    return std::make_unique<TimedProgram>(timed_->compile(lowered), lowered, costs_);
  }
  bool computes() const override { return true; }
  void write(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    timed_->write(value, device, host);
  }
  void read(const Value& value, const std::byte* device, std::span<std::byte> host) override {
    timed_->read(value, device, host);
  }
  void synchronize() override { timed_->synchronize(); }

 private:
  std::unique_ptr<Device> timed_;
  Costs& costs_;
};

// Prints one row for each name, the slowest first, and the time between operations last.
void print(const Costs& costs, double step_seconds, int steps, const Ceilings& ceilings) {
  std::vector<std::pair<std::string, Cost>> rows(costs.by_name.begin(), costs.by_name.end());
  std::ranges::sort(rows, std::greater(), [](const auto& row) { return row.second.seconds; });
  const double all = step_seconds * steps;
  double inside = 0;
  fmt::print("{:>7} {:>9} {:>6} {:>8} {:>5} {:>7} {:>5} {:>5}  operation\n", "a step", "ms",
             "share", "GFLOP/s", "of", "GB/s", "of", "roof");
  for (const auto& [name, cost] : rows) {
    const double flops = cost.flops / cost.seconds, bytes = cost.bytes / cost.seconds;
    const double at_best = std::max(cost.flops / ceilings.flops, cost.bytes / ceilings.bytes);
    fmt::print("{:7} {:9.2f} {:5.1f}% {:8.1f} {:4.0f}% {:7.2f} {:4.0f}% {:4.0f}%  {}\n",
               cost.calls / steps, 1e3 * cost.seconds / steps, 100 * cost.seconds / all,
               flops / 1e9, 100 * flops / ceilings.flops, bytes / 1e9, 100 * bytes / ceilings.bytes,
               100 * at_best / cost.seconds, name);
    inside += cost.seconds;
  }
  fmt::print("{:>7} {:9.2f} {:5.1f}% {:>41} outside of operations: the batch, the allocator\n", "",
             1e3 * (all - inside) / steps, 100 * (all - inside) / all, "");
  fmt::print(
      "A step takes {:.1f} ms. Ceilings: {:.1f} GFLOP/s of fused multiply-add, {:.1f} GB/s.\n",
      1e3 * step_seconds, ceilings.flops / 1e9, ceilings.bytes / 1e9);
  fmt::print(
      "roof: the time that the higher of the two ceilings would allow, of the time it took\n");
}

int run(int argc, char** argv) {
  CLI::App app("Shows where the time of a training step on the host goes");
  Cell cell;
  cell.execution = Spec("graph");
  cell.allocator = Spec::parse("bfc(growth=on)");
  std::string workload, optimizer = "sgd(learning_rate=0.001)", rules = "onednn";
  int steps = 5;
  Costs costs;
  app.add_option("workload", workload, "as in resnet(batch=64,depth=18,image=32,stem=cifar)")
      ->required();
  app.add_option("--steps", steps, "steps that count, after two that do not")
      ->capture_default_str();
  app.add_option("--optimizer", optimizer)->capture_default_str();
  app.add_option("--rules", rules)->capture_default_str();
  app.add_flag("--each", costs.each, "one row an operation, not one a kind");
  CLI11_PARSE(app, argc, argv);
  cell.workload = Spec::parse(workload);
  cell.optimizer = Spec::parse(optimizer);

  Ceilings ceilings = measure_ceilings();
  const auto network = make_micro_batch_workload(cell);
  const TrainingPlan plan = plan_training(*network, cell, rules);
  TimedDevice device(make_device(Spec("host")), costs);
  TraceRecorder recorder(0);
  const auto allocator = make_allocator(cell.allocator, device.memory());
  Trainer trainer(plan, device, *allocator, recorder, network->open_data(1), 1);
  for (int step = 0; step < 2; ++step) trainer.step();
  costs.counting = true;
  double seconds = 0;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = trainer.step();
    seconds += 1e-9 * static_cast<double>(result.time_ns - result.stall_ns);
  }
  const Ceilings after = measure_ceilings();
  ceilings = {.flops = std::max(ceilings.flops, after.flops),
              .bytes = std::max(ceilings.bytes, after.bytes)};
  print(costs, seconds / steps, steps, ceilings);
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  try {
    return headroom::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "roofline: {}\n", error.what());
    return 2;
  }
}
