// Gradient accumulation: k forward and backward passes over k-th parts of the batch, their
// gradients summed in buffers that live across steps (what frameworks do when gradients are zeroed
// and not set to none), then one update. Activations shrink to one k-th; the sums keep a gradient
// of each weight's size alive across steps, which otherwise lives only until the update. The mean
// of the parts' means equals the batch's mean when all parts have equally many labels; otherwise
// weigh=labels corrects it. Batch normalisation sees each part alone, so it changes the training
// (and its statistics change k times a step).
#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/accumulation.h"
#include "harness/program/advance.h"

namespace headroom {
namespace {

int count_of(const Spec& spec) { return static_cast<int>(spec.integer("k", 4)); }

bool weighs_labels(const Spec& spec) {
  const std::string weigh = spec.text("weigh", "parts");
  if (weigh != "parts" && weigh != "labels")
    throw InputError("micro_batches: weigh is parts or labels, not '" + weigh + "'");
  return weigh == "labels";
}

// Emits the number of labels over which the loss of a part is averaged.
ValueId emit_label_count(ProgramBuilder& builder) {
  const Program& program = builder.program();
  const auto loss = std::find_if(program.ops.begin(), program.ops.end(), [&](const Op& op) {
    return op.kind == "softmax_cross_entropy" && op.outputs[0] == program.loss;
  });
  if (loss == program.ops.end())
    throw NotSupported("accumulation=micro_batches(weigh=labels): the loss of '" + program.name +
                       "' is not a mean over labels; use weigh=parts");
  return builder.emit_one("count_labels", program.name + ".labels.count", {loss->inputs[1]});
}

Program apply_micro_batches(Program program, const Spec& spec, MicroBatch position) {
  const Attributes start = {{"start", std::int64_t{position == MicroBatch::first ? 1 : 0}},
                            {"scale", 1.0}};
  ProgramBuilder builder(program, Phase::backward);
  const auto sum_of = [&](const std::string& name, const Shape& shape) {
    return builder.persistent(name, shape, Role::gradient, {Fill::constant, 0.0});
  };
  ValueId labels = kNoValue;
  ValueId all_labels = kNoValue;
  if (weighs_labels(spec)) {
    labels = emit_label_count(builder);
    all_labels = sum_of(program.name + ".labels.sum", {1});
    builder.emit("accumulate", program.name + ".labels.accumulate", {all_labels, labels}, start,
                 {all_labels});
  }
  for (auto& [weight, gradient] : program.gradients) {
    const Value trained = program.value(weight);
    const ValueId sum = sum_of(trained.name + ".gradient_sum", trained.shape);
    std::vector<ValueId> operands = {sum, gradient};
    Attributes attributes = start;
    if (labels != kNoValue) {
      operands.push_back(labels);
    } else {
      attributes["scale"] = 1.0 / count_of(spec);
    }
    builder.emit("accumulate", trained.name + ".accumulate", operands, attributes, {sum});
    if (labels != kNoValue && position == MicroBatch::last)
      builder.emit("divide", trained.name + ".mean", {sum, all_labels}, {}, {sum});
    gradient = sum;
  }
  // Each gradient is accumulated as soon as it is made (and, with weigh=labels, the labels are
  // counted), so that few gradients are alive besides the sums.
  return advance(std::move(program), [](const Op& op) { return op.kind == "accumulate"; });
}

const bool micro_batches_is_registered = Registry<AccumulationStrategy>::instance().add(
    {.name = "micro_batches",
     .summary =
         "Processes the batch in k parts, one after another, sums their gradients and updates once",
     .parameters = {"k", "weigh"},
     .examples = {"micro_batches(k=2)", "micro_batches(k=4)", "micro_batches(k=4,weigh=labels)"},
     .micro_batches = count_of,
     .apply = apply_micro_batches,
     .breaks = "batch normalisation sees each part alone; parts with different numbers of labels "
               "have equal weight unless weigh=labels; sums round in another order"});

}  // namespace
}  // namespace headroom
