#include "harness/training/step_counts.h"

#include <algorithm>

#include "harness/program/offload.h"
#include "harness/program/recomputed.h"

namespace headroom {
namespace {

Bytes touched_by(const Program& program, const Op& op) {
  Bytes bytes = 0;
  for (const auto* ids : {&op.inputs, &op.outputs, &op.mutates})
    for (const ValueId id : *ids)
      if (id != kNoValue) bytes += program.value(id).bytes;
  return bytes;
}

}  // namespace

StepCounts count_step(const TrainingPlan& plan) {
  StepCounts counts;
  for (const TrainingPlan::Execution& execution : plan.usual().executions) {
    const Program& program = plan.usual().programs[execution.program];
    counts.flops += total_flops(program);
    counts.recomputed += recomputed_ops(program);
    const Offloaded offloaded = count_offloaded(program);
    counts.offloaded += offloaded.moved;
    counts.host_peak = std::max(counts.host_peak, offloaded.peak);
    for (const Op& op : program.ops) {
      if (op.kind == "hold") continue;
      ++counts.ops;
      counts.touched += touched_by(program, op);
    }
  }
  return counts;
}

}  // namespace headroom
