// Owns what lives across steps (weights, statistics, optimizer states) and chooses which Program
// each step runs: training steps, then evaluation.
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
  Program train;
  std::optional<Program> evaluate;
};
TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules);

struct StepResult {
  std::uint64_t time_ns = 0;
  std::uint64_t stall_ns = 0;  // of that, waiting for the batch
  double loss = 0;             // 0 on meta
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
  std::vector<std::vector<std::byte>> batch_;  // host side, one buffer per Program input
  std::unique_ptr<CompiledProgram> train_compute_, evaluate_compute_;
  std::unique_ptr<Executor> train_, evaluate_;
};

}  // namespace headroom
