// Gradient accumulation: k forward and backward passes over k-th parts of the batch, their
// gradients summed in buffers that live across steps (what frameworks do when gradients are zeroed
// and not set to none), one update. Activations shrink to a k-th; the sums cost a gradient's bytes
// per weight, which without it live only until the update. The mean of the parts' means is the
// batch's mean where all parts weigh the same; batch normalisation sees each part alone, so a
// network that has it is trained differently (its statistics change k times a step).
#include "harness/base/registry.h"
#include "harness/run/accumulation.h"

namespace headroom {
namespace {

int count_of(const Spec& spec) { return static_cast<int>(spec.integer("k", 4)); }

Program apply_micro_batches(Program program, const Spec& spec, MicroBatch position) {
  ProgramBuilder builder(program, Phase::backward);
  for (auto& [weight, gradient] : program.gradients) {
    const Value trained = program.value(weight);
    const ValueId sum = builder.persistent(trained.name + ".gradient_sum", trained.shape,
                                           Role::gradient, {Fill::constant, 0.0});
    builder.emit("accumulate", trained.name + ".accumulate", {sum, gradient},
                 {{"scale", 1.0 / count_of(spec)},
                  {"start", std::int64_t{position == MicroBatch::first ? 1 : 0}}},
                 {sum});
    gradient = sum;
  }
  return program;
}

const bool registered = Registry<AccumulationStrategy>::instance().add(
    {.name = "micro_batches",
     .summary = "k parts of the batch one after another, their gradients summed, one update",
     .parameters = {"k"},
     .examples = {"micro_batches(k=2)", "micro_batches(k=4)"},
     .micro_batches = count_of,
     .apply = apply_micro_batches});

}  // namespace
}  // namespace headroom
