// Owns what lives across steps (weights, statistics, optimizer states) and chooses which Programs
// each step runs: the training Programs in their order (several where networks take turns), then
// evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "harness/run/cell.h"
#include "harness/run/executor.h"
#include "harness/run/workload.h"

namespace headroom {

// The Programs of a cell after every pass, lowered. Needs no device.
struct TrainingPlan {
  struct Run {
    std::size_t program;      // of Step::programs
    std::size_t micro_batch;  // that it reads
    std::size_t first_input;  // of those that make up a micro-batch
  };
  struct Step {
    std::vector<Program> programs;
    std::vector<Run> runs;  // in their order, at least one
    // Those whose inputs, one after another, make up a micro-batch.
    std::vector<std::size_t> feeding;
  };

  std::vector<Step> shapes;  // that steps come in, at least one; the usual one first
  int micro_batches = 1;     // that make up the batch of a step
  std::vector<std::size_t> shape_cycle = {0};  // of step 1, 2, …, over and over
  std::optional<Program> evaluate;
  int evaluation_interval = 0;  // also between steps; 0 = only after the last
  // Why a pass of the cell did to none of the Programs what its name says; "" = all passes did.
  std::string not_engaged = {};

  const Step& usual() const { return shapes.front(); }
  std::size_t shape_of(int step) const;  // 1, 2, …
  bool evaluates_after(int step) const;

  // Of all shapes, then evaluation.
  std::vector<const Program*> programs() const;
  // Those that the first `steps` steps run.
  std::vector<const Program*> programs_of(int steps) const;
  // Each name once, in the order of first use.
  std::vector<const Value*> persistent_values() const;
  // Of one micro-batch, in the order in which the BatchSource fills them; the shapes differ in
  // sizes only.
  std::vector<const Value*> inputs(std::size_t shape = 0) const;
  // Of the n-th micro-batch of a run, from 0: plain bytes of each input.
  std::vector<Bytes> input_bytes(std::uint64_t micro_batch) const;
};
// `workload` at the size of one micro-batch (make_micro_batch_workload). Throws NotSupported where
// strategies of the cell exclude each other.
TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules);

struct StepResult {
  std::uint64_t time_ns = 0;
  std::uint64_t stall_ns = 0;  // of that, waiting for the batch
  double loss = 0;             // of the first forward pass, mean over micro-batches; 0 on meta
};

class Trainer {
 public:
  // Takes memory for the persistent values and fills them from `seed`. `data` is null on devices
  // that compute nothing; `injection` is null but in controls. Throws OutOfMemory when not even
  // the persistent values fit.
  Trainer(const TrainingPlan& plan, Device& device, Allocator& allocator, TraceRecorder& recorder,
          std::unique_ptr<BatchSource> data, std::uint64_t seed, Injection* injection = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // One training step, of the shape whose turn it is, and the evaluation that may be due after it,
  // which the result's times leave out.
  StepResult step();
  // Share of held-out samples classified correctly, over at most `batches` batches.
  double evaluate(int batches);

  // Plain row-major copy of a persistent value or, right after a step, of the (last micro-)batch
  // it used.
  std::vector<std::byte> read_persistent(const Value& value) const;
  std::span<const std::vector<std::byte>> last_batch() const { return batches_.back(); }

 private:
  struct Runnable {
    const Program* program;
    std::unique_ptr<CompiledProgram> compute;
    std::unique_ptr<Executor> executor;
  };

  using HostBatch = std::vector<std::vector<std::byte>>;  // one buffer per input

  static std::vector<std::span<std::byte>> slots_of(std::span<const Value* const> inputs,
                                                    HostBatch& batch);
  void load_batches(std::span<const Value* const> inputs);
  // Returns the Program's first result; 0 on meta. Its inputs are `batch` from `first_input` on.
  float run(Runnable& runnable, const HostBatch& batch, std::size_t first_input);
  void evaluate_between_steps();
  void initialise(const Program& program, std::uint64_t seed);

  const TrainingPlan& plan_;
  Device& device_;
  Allocator& allocator_;
  TraceRecorder& recorder_;
  std::unique_ptr<BatchSource> data_;
  Injection* injection_;
  PersistentBlocks persistent_;
  int steps_ = 0;                                  // begun
  std::vector<std::vector<const Value*>> inputs_;  // of each shape
  std::vector<const Value*> evaluation_inputs_;
  std::vector<HostBatch> batches_;           // one per micro-batch
  std::vector<std::size_t> first_runnable_;  // of each shape
  std::vector<Runnable> runnables_;          // as TrainingPlan::programs()
};

}  // namespace headroom
