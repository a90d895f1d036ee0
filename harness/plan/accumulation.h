// Gradient accumulation as the Trainer knows it: a step's batch comes in several micro-batches,
// each with a forward and a backward pass of its own, and the weights change after the last.
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
  // Makes a differentiated Program that of one micro-batch: gradients are summed up across them.
  std::function<Program(Program, const Spec&, MicroBatch)> apply;
  std::string breaks = {};  // as ProgramPass::breaks
};

// 1 without accumulation.
int micro_batches_of(const Spec& accumulation);

// The cell's workload at the size of one micro-batch. Throws InputError where its batch cannot be
// divided, or is no parameter.
std::unique_ptr<Workload> make_micro_batch_workload(const Cell& cell);

}  // namespace headroom
