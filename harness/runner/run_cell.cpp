// One sample: builds the cell's training run in this process, steps it, and reads every memory
// figure. Errors on the way become the sample's status.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "harness/base/duration.h"
#include "harness/base/registry.h"
#include "harness/control/injection.h"
#include "harness/machine/contention.h"
#include "harness/machine/driver_memory.h"
#include "harness/machine/heap_witness.h"
#include "harness/machine/process_memory.h"
#include "harness/memory/recording_allocator.h"
#include "harness/memory/recording_cost.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/scenario.h"
#include "harness/program/pass.h"
#include "harness/results/run_info.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/quiet_steps.h"
#include "harness/trace/recorder.h"
#include "harness/trace/trace_io.h"
#include "harness/training/loss_scale.h"
#include "harness/training/offload_figures.h"
#include "harness/training/step_counts.h"
#include "harness/training/trainer.h"
#include "harness/training/zero_weights.h"
#include "harness/workload/pipeline.h"

namespace headroom {
namespace {

// An upper bound of the events of `steps` steps, including the segments of a strategy without a
// cache.
std::size_t expected_events(const TrainingPlan& plan, int steps) {
  std::size_t values = 0;
  for (const TrainingPlan::Step& step : plan.shapes) {
    std::size_t of_step = 0;
    for (const TrainingPlan::Execution& execution : step.executions)
      of_step += step.programs[execution.program].values.size();
    values = std::max(values, of_step);
  }
  if (plan.evaluation_interval > 0) values += plan.evaluate->values.size();
  return 4 * values * (static_cast<std::size_t>(steps) + 1) + 1024;
}

// The size on the host of the largest batch that the pipeline passes on.
Bytes largest_batch_bytes(const TrainingPlan& plan) {
  Bytes largest = 0;
  const std::size_t batches =
      plan.shape_cycle.size() * static_cast<std::size_t>(plan.micro_batches);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const std::vector<Bytes> inputs = plan.input_bytes(batch);
    largest = std::max(largest, std::accumulate(inputs.begin(), inputs.end(), Bytes{0}));
  }
  return largest;
}

// Reads the process's memory at the moments that results list: between steps, never within one.
class ProcessWatch {
 public:
  explicit ProcessWatch(ProcessMemory& memory) : memory_(memory) {
    memory_.baseline = read_residency().resident;
  }
  void before_first_step() { memory_.resident.initial = read_residency().resident; }
  void after_step(int step, int warmup_steps, int last_step) {
    const Residency now = read_residency();
    if (step == 1) memory_.resident.after_step_1 = now.resident;
    if (step == warmup_steps) {
      memory_.resident.warmup_peak = now.high_water_mark;
      reset_high_water_mark();
    }
    if (step == last_step) memory_.resident.steady_peak = now.high_water_mark;
    memory_.resident.overall_peak = std::max(memory_.resident.overall_peak, now.high_water_mark);
  }

 private:
  ProcessMemory& memory_;
};

// `pipeline` is null where nothing is computed.
void take_steps(const Cell& cell, const Device& device, DriverWatch& driver, Trainer& trainer,
                TraceRecorder& recorder, const Pipeline* pipeline, TurnTaker& turns,
                Sample& sample) {
  const int steps = cell.warmup_steps + cell.measured_steps;
  ProcessWatch watch(sample.process);
  watch.before_first_step();
  driver.before_first_step(device);
  const std::optional<CoreTimes> cores_before = core_times();
  HeapCounters heap_before{};
  for (int step = 1; step <= steps; ++step) {
    if (step > cell.warmup_steps) turns.before_step(sample.step_time_ns.back());
    if (step == cell.warmup_steps + 1) {
      restart_heap_peak();
      heap_before = heap_counters();
    }
    recorder.enter_step(step);
    const std::uint64_t faults = minor_faults();
    const StepResult result = trainer.step();
    sample.minor_faults.push_back(minor_faults() - faults);
    sample.step_time_ns.push_back(result.time_ns);
    sample.stall_time_ns.push_back(result.stall_ns);
    if (pipeline != nullptr) {
      sample.loss.push_back(result.loss);
      sample.pipeline.host_bytes_after_step.push_back(pipeline->host_bytes());
    }
    watch.after_step(step, cell.warmup_steps, steps);
    driver.after_step(device, step, cell.warmup_steps);
  }
  if (pipeline != nullptr) {
    sample.pipeline.basis = PipelineRecord::Basis::measured;
    sample.pipeline.stages = pipeline->reports();
  }
  const HeapCounters heap_after = heap_counters();
  if (const auto cores = core_times(); pipeline != nullptr && cores && cores_before)
    sample.cpu_wait_ns = waited_for_others_ns(*cores_before, *cores);
  sample.witness = {
      .available = heap_witness_available(),
      .heap_live_bytes = heap_before.live_bytes,
      .heap_peak_bytes = heap_after.peak_bytes,
      .heap_allocations_per_step = (heap_after.allocations - heap_before.allocations) /
                                   static_cast<std::uint64_t>(cell.measured_steps)};
}

void check(const Cell& cell) {
  if (cell.warmup_steps < 1 || cell.measured_steps < 1)
    throw InputError(
        fmt::format("{}: needs at least one warm-up and one measured step, has {} "
                    "and {}",
                    cell.id(), cell.warmup_steps, cell.measured_steps));
}

// Why the first pass or strategy that had no effect did not engage, determined after the run.
Reason why_not_engaged(const Cell& cell, const TrainingPlan& plan, const Allocator& allocator,
                       const Trace& trace, const Trainer& trainer, const BatchSource* batches,
                       const Injection* injection) {
  const auto& strategies = Registry<AllocatorStrategy>::instance();
  Reason why = plan.not_engaged;
  if (!why) why = allocator.why_not_engaged();
  const Spec& strategy = cell.allocator.innermost();
  if (!why && strategies.contains(strategy.name()))
    if (const auto& shows = strategies.find(strategy.name()).why_not_engaged)
      why = shows(strategy, trace);
  for (const TrainingPlan::Step& step : plan.shapes)
    if (!why) why = why_not_lowered<PrecisionStrategy>(step.programs, cell.precision);
  if (!why) why = trainer.why_not_engaged();
  if (!why && batches != nullptr) why = batches->why_not_engaged();
  if (!why && injection != nullptr) why = injection->why_not_engaged();
  return why;
}

// Marks the sample as invalid if there is a reason to.
void reject(Sample& sample, const Reason& why) {
  if (!why) return;
  sample.status = SampleStatus::invalid;
  sample.reason = *why;
}

// Why a sample that trained to the end is invalid.
Reason why_invalid(const Cell& cell, const TrainingPlan& plan, const Sample& sample) {
  const int passes =
      (cell.warmup_steps + cell.measured_steps) * static_cast<int>(plan.usual().feeding.size());
  if (Reason why = why_nothing_trained(sample.figures, passes)) return why;
  return unless(sample.zero_weight_share != 0 || !has_masks(plan),
                fmt::format("pruning={}: no weight is zero after the last step; let it begin "
                            "earlier, or take more steps",
                            cell.pruning.to_string()));
}

void describe_plan(const Cell& cell, const Workload& workload, const TrainingPlan& plan,
                   Sample& sample) {
  sample.rules = plan.usual().programs.front().rules;
  sample.samples_per_step = workload.batch_size() * plan.micro_batches;
  const StepCounts counts = count_step(plan);
  sample.flops_per_step = counts.flops;
  sample.recomputed_ops_per_step = counts.recomputed;
  for (const Value* value : plan.persistent_values())
    if (value->role == Role::weight) sample.parameter_count += element_count(value->shape);
  sample.lower_bound_bytes =
      peak_live_bytes(plan.programs_of(cell.warmup_steps + cell.measured_steps));
  check_pipeline(cell.pipeline, workload);
  sample.pipeline.basis = PipelineRecord::Basis::estimated;
  sample.pipeline.stages = estimate_pipeline(cell.pipeline, largest_batch_bytes(plan));
}

// Figures that are read from the trained model, after its last step.
void read_trained(const Cell& cell, const Workload& workload, const TrainingPlan& plan,
                  bool computes, Trainer& trainer, Sample& sample) {
  if (computes && cell.pruning.name() != PruningStrategy::kNeutral)
    sample.zero_weight_share = zero_weight_share(trainer, plan);
  if (computes) sample.figures = loss_scale_figures(trainer, plan);
  sample.figures.merge(offload_figures(trainer, cell.warmup_steps + cell.measured_steps));
  if (const Bytes pool = trainer.captured_bytes(); pool > 0)
    sample.figures["captured_pool_bytes"] = static_cast<double>(pool);
  if (computes && workload.held_out_batches() > 0)
    sample.held_out_accuracy = trainer.evaluate(workload.held_out_batches());
}

// Trains the cell, which must be runnable here.
void train(const Cell& cell, const DeviceKind& kind, const std::string& trace_path,
           Clock::time_point start, TurnTaker& turns, Sample& sample) {
  DriverWatch driver(sample.driver, cell.device);  // first: lowering for a GPU makes its context
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan =
      plan_training(*workload, cell, cell.rules.empty() ? kind.default_rules : cell.rules);
  describe_plan(cell, *workload, plan, sample);
  const int steps = cell.warmup_steps + cell.measured_steps;
  TraceRecorder recorder(expected_events(plan, steps));
  for (const Program* program : plan.programs())
    for (const Op& op : program->ops) recorder.trace().op_names.push_back(op.name);
  std::unique_ptr<Device> device;
  try {
    device = kind.create(cell.device);
    device->memory().record_into(&recorder);
    recorder.trace().header = {.device = cell.device.to_string(),
                               .rules = plan.usual().programs.front().rules,
                               .allocator = cell.allocator.to_string(),
                               .workload = cell.workload.to_string(),
                               .capacity_bytes = device->memory().capacity(),
                               .granule_bytes = device->memory().granule()};
    const auto allocator = make_allocator(cell.allocator, device->memory());
    RecordingAllocator recorded(*allocator, recorder);
    auto pipeline = device->computes()
                        ? std::make_unique<Pipeline>(
                              cell.pipeline, *workload,
                              [&plan](std::uint64_t n) { return plan.input_bytes(n); }, sample.seed,
                              device.get())
                        : nullptr;
    const auto injection = make_injection(cell.inject, recorded);
    const Pipeline* batches = pipeline.get();
    Trainer trainer(plan, *device, recorded, recorder, std::move(pipeline), sample.seed,
                    injection.get());
    sample.device_setup_ns = device->memory().counters().allocation_ns;
    sample.setup_ns = ns_since(start);
    take_steps(cell, *device, driver, trainer, recorder, batches, turns, sample);
    sample.ledger = make_ledger_of(recorder.trace(), cell.warmup_steps, steps);
    recorder.enter_step(steps + 1);  // evaluation and the final frees belong to no training step
    read_trained(cell, *workload, plan, device->computes(), trainer, sample);
    Reason why = why_not_engaged(cell, plan, *allocator, recorder.trace(), trainer, batches,
                                 injection.get());
    reject(sample, why ? why : why_invalid(cell, plan, sample));
  } catch (const OutOfMemory& error) {
    sample.status = SampleStatus::oom;
    sample.reason = error.what();
    if (device != nullptr && !device->memory().driver_refusals().empty())
      sample.reason += "; " + device->memory().driver_refusals();
    sample.oom = error.report();
    sample.ledger = make_ledger(recorder.trace(), cell.warmup_steps);
  }
  sample.ledger_available = true;
  sample.recording = recording_cost(recorder.trace(), cell.warmup_steps, steps);
  if (!trace_path.empty()) write_trace(recorder.trace(), trace_path);
}

// Runs a scenario, for effects that training steps cannot show.
void take_scenario(const Cell& cell, std::uint64_t seed, const TurnTaker& turns, Sample& sample) {
  sample.rules = cell.rules;
  try {
    ScenarioResult result = run_scenario(cell, seed, turns.descriptor());
    sample.figures = std::move(result.figures);
    sample.note = std::move(result.note);
    sample.engine = std::move(result.engine);
    sample.step_time_ns = std::move(result.step_time_ns);
    reject(sample, result.why_not_engaged);
  } catch (const OutOfMemory& error) {
    sample.status = SampleStatus::oom;
    sample.reason = error.what();
    sample.oom = error.report();
  }
}

}  // namespace

Sample run_cell(const Cell& cell, std::uint64_t seed, const std::string& trace_path,
                TurnTaker turns) {
  const auto start = Clock::now();
  if (trains(cell)) check(cell);
  Sample sample;
  sample.cell = cell;
  sample.seed = seed;
  sample.started = timestamp_now();
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(cell.device.name());
  try {
    if (const std::string why = kind.unavailable(); !why.empty()) throw NotSupported(why);
    if (trains(cell))
      train(cell, kind, trace_path, start, turns, sample);
    else
      take_scenario(cell, seed, turns, sample);
  } catch (const NotSupported& error) {
    sample.status = SampleStatus::unsupported;
    sample.reason = error.what();
  }
  return sample;
}

}  // namespace headroom
