// The concrete Programs that a cell trains, after every pass and lowering.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/plan/cell.h"
#include "harness/program/program.h"
#include "harness/workload/workload.h"

namespace headroom {

// The Programs of a cell after every pass, lowered. Needs no device.
struct TrainingPlan {
  struct Execution {
    std::size_t program;      // index into Step::programs
    std::size_t micro_batch;  // index of the micro-batch it reads
    std::size_t first_input;  // its first input among the inputs of a micro-batch
  };
  struct Step {
    std::vector<Program> programs;
    std::vector<Execution> executions;  // of programs, in order, at least one
    // Programs whose inputs, concatenated, make up a micro-batch.
    std::vector<std::size_t> feeding;
  };

  std::vector<Step> shapes;  // the shapes of steps, at least one; the usual one first
  int micro_batches = 1;     // number in the batch of a step
  std::vector<std::size_t> shape_cycle = {0};  // shapes of steps 1, 2, …, repeated cyclically
  std::optional<Program> evaluate;
  int evaluation_interval = 0;  // also between steps; 0 = only after the last
  // Whether the inputs of an execution are copied to the device while the one before it computes.
  bool staged = false;
  // Why a pass of the cell had no effect on any Program; absent if all passes engaged.
  Reason not_engaged = {};

  const Step& usual() const { return shapes.front(); }
  std::size_t shape_of(int step) const;  // `step` counts from 1
  bool evaluates_after(int step) const;

  // The Programs of all shapes, then evaluation.
  std::vector<const Program*> programs() const;
  // The Programs that the first `steps` steps run.
  std::vector<const Program*> programs_of(int steps) const;
  // The persistent values, each name once, in order of first use.
  std::vector<const Value*> persistent_values() const;
  // The inputs of one micro-batch, in the order in which the BatchSource fills them. Shapes differ
  // in sizes only.
  std::vector<const Value*> inputs(std::size_t shape = 0) const;
  // Plain bytes of each input of micro-batch `micro_batch`, counted from 0 over all steps.
  std::vector<Bytes> input_bytes(std::uint64_t micro_batch) const;
};

// `workload` must have the size of one micro-batch (make_micro_batch_workload). Throws NotSupported
// if strategies of the cell exclude each other.
TrainingPlan plan_training(const Workload& workload, const Cell& cell, std::string_view rules);

}  // namespace headroom
