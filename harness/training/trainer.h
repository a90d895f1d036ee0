// Owns the values that live across steps (weights, statistics, optimizer states) and chooses which
// Programs run: the training Programs of each step in their order (several if networks take turns),
// then evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "harness/base/error.h"
#include "harness/execution/capture_pools.h"
#include "harness/execution/executor.h"
#include "harness/execution/program_executor.h"
#include "harness/memory/host_store.h"
#include "harness/training/training_plan.h"
#include "harness/workload/workload.h"

namespace headroom {

struct StepResult {
  std::uint64_t time_ns = 0;
  std::uint64_t stall_ns = 0;  // part of the step's time spent waiting for the batch
  double loss = 0;             // of the first forward pass, mean over micro-batches; 0 on meta
};

class Trainer {
 public:
  // Allocates the persistent values and fills them from `seed`. `data` is null on devices that
  // compute nothing; `injection` is null except in controls. Throws OutOfMemory if the persistent
  // values do not fit.
  Trainer(const TrainingPlan& plan, Device& device, Allocator& allocator, TraceRecorder& recorder,
          std::unique_ptr<BatchSource> data, std::uint64_t seed, Injection* injection = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Runs one training step in the shape whose turn it is, and the evaluation due after it, if any.
  // The times in the result exclude the evaluation.
  StepResult step();
  // Returns the share of held-out samples classified correctly, over at most `batches` batches.
  double evaluate(int batches);

  // Returns a plain row-major copy of a persistent value. Right after a step, last_batch() is the
  // (last micro-)batch it used, in the same layout.
  std::vector<std::byte> read_persistent(const Value& value) const;
  // The same for a value of 32-bit floats.
  std::vector<float> read_floats(const Value& value) const;
  // Must be called between steps.
  void write_persistent(const Value& value, std::span<const std::byte> plain);
  std::span<const std::vector<std::byte>> last_batch() const { return batches_.back(); }
  // Null if nothing is offloaded.
  const HostStore* host_side() const { return host_side_.get(); }
  Bytes offloaded_bytes() const { return offloaded_; }  // copied to the host so far
  // Bytes that captured Programs hold permanently; 0 if none is captured.
  Bytes captured_bytes() const { return pools_ == nullptr ? 0 : pools_->bytes(); }
  // Why no training Program ran as its execution names it; absent if at least one did.
  Reason why_not_engaged() const;

 private:
  // Which execution of a Program: step number, then index within the step.
  struct Place {
    int step;  // 1, 2, …
    std::size_t index;
  };
  struct Runnable {
    const Program* program;
    std::unique_ptr<CompiledProgram> compute;
    std::unique_ptr<ProgramExecutor> executor;
    Bytes offloads = 0;  // per execution
  };

  using HostBatch = std::vector<std::vector<std::byte>>;  // one buffer per input

  static std::vector<std::span<std::byte>> slots_of(std::span<const Value* const> inputs,
                                                    HostBatch& batch);
  void load_batches(std::span<const Value* const> inputs);
  // Returns the Program's first result; 0 on meta. Its inputs are those of `batch` from
  // `first_input` on.
  float run(Runnable& runnable, const HostBatch& batch, std::size_t first_input);
  float execute(Runnable& runnable, const ProgramExecutor::Transfer& feed,
                const std::function<void()>& fed = nullptr);
  // Like run(), with staged inputs; stages the inputs of the next execution meanwhile.
  float run_staged(Place place);
  // Stages the inputs of this execution. Requests the batch if this execution is the first to read
  // it.
  void stage(Place place);
  const TrainingPlan::Execution& execution_at(Place place) const;
  Runnable& runnable_at(Place place);
  Place after(Place place) const;
  bool is_last_reader(Place place) const;  // whether no later execution reads its micro-batch
  void evaluate_between_steps();
  void initialise(const Program& program, std::uint64_t seed);
  std::unique_ptr<ProgramExecutor> make_executor(const Runnable& runnable, std::uint32_t first_op);

  const TrainingPlan& plan_;
  Device& device_;
  Allocator& allocator_;
  TraceRecorder& recorder_;
  std::unique_ptr<BatchSource> data_;
  Injection* injection_;
  PersistentBlocks persistent_;
  std::unique_ptr<DeviceMemory> host_memory_;
  std::unique_ptr<HostStore> host_side_;
  std::unique_ptr<CapturePools> pools_;
  Bytes offloaded_ = 0;
  int steps_ = 0;                                  // number of steps begun
  std::vector<std::vector<const Value*>> inputs_;  // of each shape
  std::vector<const Value*> evaluation_inputs_;
  std::vector<HostBatch> batches_;           // one per micro-batch
  std::vector<LentBatch> lent_;              // one per micro-batch if batches are staged
  std::uint64_t stall_ns_ = 0;               // of the current step
  std::vector<std::size_t> first_runnable_;  // of each shape
  std::vector<Runnable> runnables_;          // in the order of TrainingPlan::programs()
};

}  // namespace headroom
