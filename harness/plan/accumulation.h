// Gradient accumulation as the Trainer sees it: a step's batch is split into micro-batches, each
// with its own forward and backward pass, and the weights are updated after the last one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/plan/cell.h"
#include "harness/program/program.h"
#include "harness/workload/workload.h"

namespace headroom {

enum class MicroBatch { first, middle, last };

struct AccumulationStrategy {
  static constexpr std::string_view kKind = "accumulation";
  static constexpr std::string_view kNeutral = "none";
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples = {};
  // How many micro-batches a step has, at least 2.
  std::function<int(const Spec&)> micro_batches;
  // Turns a differentiated Program into that of one micro-batch, which adds to the gradients of the
  // earlier ones.
  std::function<Program(Program, const Spec&, MicroBatch)> apply;
  std::string breaks = {};  // like ProgramPass::breaks
};

// Number of micro-batches in a step; 1 without accumulation.
int micro_batches_of(const Spec& accumulation);

// Makes the cell's workload with the batch size of one micro-batch. Throws InputError if the batch
// is not a parameter or cannot be divided.
std::unique_ptr<Workload> make_micro_batch_workload(const Cell& cell);

}  // namespace headroom
