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
  std::vector<Program> train;  // of one step, at least one
  std::optional<Program> evaluate;

  // The training Programs, then evaluation.
  std::vector<const Program*> programs() const;
  // Of the training Programs, each name once, in the order of first use.
  std::vector<const Value*> persistent_values() const;
  // Of the training Programs, in the order in which the BatchSource fills them.
  std::vector<const Value*> inputs() const;
};
TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules);

struct StepResult {
  std::uint64_t time_ns = 0;
  std::uint64_t stall_ns = 0;  // of that, waiting for the batch
  double loss = 0;             // of the first Program; 0 on meta
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

  StepResult step();
  // Share of held-out samples classified correctly, over at most `batches` batches.
  double evaluate(int batches);

  // Plain row-major copy of a persistent value or, right after a step, of the batch it used.
  std::vector<std::byte> read_persistent(const Value& value) const;
  std::span<const std::vector<std::byte>> last_batch() const { return batch_; }

 private:
  void initialise(const Program& program, std::uint64_t seed);

  const TrainingPlan& plan_;
  Device& device_;
  Allocator& allocator_;
  TraceRecorder& recorder_;
  std::unique_ptr<BatchSource> data_;
  Injection* injection_;
  PersistentBlocks persistent_;
  struct Runnable {
    const Program* program;
    std::unique_ptr<CompiledProgram> compute;
    std::unique_ptr<Executor> executor;
  };

  std::vector<std::vector<std::byte>> batch_;  // host side, one buffer per input of the plan
  std::vector<Runnable> runnables_;            // as TrainingPlan::programs()
};

}  // namespace headroom
