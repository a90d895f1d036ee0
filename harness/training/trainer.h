// Owns what lives across steps (weights, statistics, optimizer states) and chooses which Programs
// each step runs: the training Programs in their order (several where networks take turns), then
// evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness/execution/capture_pools.h"
#include "harness/execution/executor.h"
#include "harness/execution/program_run.h"
#include "harness/memory/host_store.h"
#include "harness/training/training_plan.h"
#include "harness/workload/workload.h"

namespace headroom {

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
  // Between steps.
  void write_persistent(const Value& value, std::span<const std::byte> plain);
  std::span<const std::vector<std::byte>> last_batch() const { return batches_.back(); }
  // Null where nothing is offloaded.
  const HostStore* host_side() const { return host_side_.get(); }
  Bytes offloaded_bytes() const { return offloaded_; }  // copied out so far
  // Of what captured Programs keep for good; 0 where none is.
  Bytes captured_bytes() const { return pools_ == nullptr ? 0 : pools_->bytes(); }
  // Why no training Program was run as its execution says ("" = one was).
  std::string why_not_engaged() const;

 private:
  // Of the runs of all steps.
  struct Place {
    int step;  // 1, 2, …
    std::size_t run;
  };
  struct Runnable {
    const Program* program;
    std::unique_ptr<CompiledProgram> compute;
    std::unique_ptr<ProgramRun> runs;
    Bytes offloads = 0;  // each time
  };

  using HostBatch = std::vector<std::vector<std::byte>>;  // one buffer per input

  static std::vector<std::span<std::byte>> slots_of(std::span<const Value* const> inputs,
                                                    HostBatch& batch);
  void load_batches(std::span<const Value* const> inputs);
  // Returns the Program's first result; 0 on meta. Its inputs are `batch` from `first_input` on.
  float run(Runnable& runnable, const HostBatch& batch, std::size_t first_input);
  float execute(Runnable& runnable, const ProgramRun::Transfer& feed,
                const std::function<void()>& fed = nullptr);
  // As run, of what has been staged; what comes after it is staged meanwhile.
  float run_staged(Place place);
  // Asks for the batch where it is the first to read it.
  void stage(Place place);
  const TrainingPlan::Run& run_at(Place place) const;
  Runnable& runnable_at(Place place);
  Place after(Place place) const;
  bool is_last_reader(Place place) const;  // of its micro-batch
  void evaluate_between_steps();
  void initialise(const Program& program, std::uint64_t seed);
  std::unique_ptr<ProgramRun> make_run(const Runnable& runnable, std::uint32_t first_op);

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
  int steps_ = 0;                                  // begun
  std::vector<std::vector<const Value*>> inputs_;  // of each shape
  std::vector<const Value*> evaluation_inputs_;
  std::vector<HostBatch> batches_;           // one per micro-batch
  std::vector<LentBatch> lent_;              // likewise, where batches are staged
  std::uint64_t stall_ns_ = 0;               // of the step under way
  std::vector<std::size_t> first_runnable_;  // of each shape
  std::vector<Runnable> runnables_;          // as TrainingPlan::programs()
};

}  // namespace headroom
