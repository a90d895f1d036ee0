// Selective recomputation (Korthikanti et al. 2022, section 5): only the values between the two
// products of attention, whose size is quadratic in the sequence length, are recomputed: scores,
// softmax and dropout. They dominate the memory of long sequences and are cheap to recompute;
// everything else is kept.
#include <span>
#include <vector>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/regions.h"

namespace headroom {
namespace {

bool is_softmax(const Op& op) { return op.kind == "masked_softmax" || op.kind == "causal_softmax"; }

bool meet(const std::vector<ValueId>& made, const std::vector<ValueId>& read) {
  return std::find_first_of(made.begin(), made.end(), read.begin(), read.end()) != made.end();
}

// A region holds each softmax with the product before it and, after it, dropout and the product
// that reads them. The output of that product leaves the region, so it is kept and the product is
// not repeated.
Program apply_selective(Program program, const Spec&) {
  checkpointing::Regions regions(checkpointing::forward_ops(program));
  const std::span forward(program.ops.data(), regions.of_op.size());
  for (const Op& softmax : forward) {
    if (!is_softmax(softmax)) continue;
    const int region = regions.add(0);
    std::vector<ValueId> weights = softmax.outputs;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      const Op& op = forward[i];
      const bool dropout = op.kind == "dropout" && meet(softmax.outputs, op.inputs);
      if (dropout) weights.insert(weights.end(), op.outputs.begin(), op.outputs.end());
      const bool product = op.kind == "batched_matmul" &&
                           (meet(op.outputs, softmax.inputs) || meet(weights, op.inputs));
      if (&op == &softmax || dropout || product) regions.of_op[i] = region;
    }
  }
  return checkpointing::recompute(std::move(program), regions);
}

const bool selective_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "selective",
     .summary = "Recomputes only the scores, softmax and dropout of attention. Saves what grows "
                "with the square of the sequence length; costs one product of each attention",
     .parameters = {},
     .examples = {"selective"},
     .apply = apply_selective,
     .why_not_engaged = checkpointing::why_not_engaged});

}  // namespace
}  // namespace headroom
