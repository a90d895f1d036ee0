// What a cell trains, made concrete: every pass applied in its order, every Program lowered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/program/program.h"
#include "harness/workload/workload.h"

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
  // What a run reads is copied to the device while the run before it computes.
  bool staged = false;
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

}  // namespace headroom
