// Training with linear layers in 8 bits (Micikevicius et al. 2022, "FP8 Formats for Deep
// Learning"): weights and activations in E4M3, gradients of activations in E5M2, one scale per
// tensor; sums in f32. Everything else is as with precision=bf16 (see bf16.cpp): batched products,
// which multiply two activations, normalisations, softmaxes, the residual stream; weights,
// optimizer states and the gradients of weights stay in f32.
//
// A linear layer keeps 8-bit copies of its input and its weight for the backward pass, each with
// its scale, in place of 16-bit ones; layers that read the same input share its copy.
//
// A scale is derived from the tensor's current largest magnitude ("current scaling"), not from a
// history of steps; `quantise` says why. No loss scale is needed: every tensor is scaled to the
// range of its type, and values between products are bf16.
//
// Layers whose samples, inputs or outputs are no multiples of 16 stay in bf16, since a GPU's 8-bit
// products do not support them; with the usual vocabularies this applies to the last layer of BERT
// and GPT. If no layer qualifies, the sample is invalid: its figures would be those of bf16.
//
// Gradients of biases are also sums of the 8-bit gradients, which are rounded before they are
// summed. Each value is kept once; cuBLASLt requires the operands of the backward pass transposed,
// so they are copied into the workspaces of those products.
//
// On host the products are emulated: numbers are rounded to 8 bits, then multiplied as f32 copies
// in workspaces. Bytes other than workspaces are those of a GPU, and losses are those of the
// recipe; times are not. Under dense rules there are no such copies.
#include <algorithm>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/precision/mixed_precision.h"

namespace headroom {
namespace {

Reason why_no_8_bits(const Spec&, const Program&, const Program& rewritten) {
  const auto& ops = rewritten.ops;
  const bool any =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == "quantise"; });
  return unless(any,
                "fp8: the step has no linear layer whose samples, inputs and outputs are multiples "
                "of 16, as products in 8 bits require");
}

const bool fp8_is_registered = Registry<PrecisionStrategy>::instance().add(
    {.name = "fp8",
     .summary =
         "Linear layers compute in 8 bits (E4M3, gradients in E5M2), and each tensor is scaled by "
         "its largest magnitude. Everything else is as in bf16. On cuda it needs compute "
         "capability 8.9; on host it is emulated, so its times say nothing about a GPU",
     .parameters = {},
     .examples = {"fp8"},
     .apply =
         [](const Program& forward, const Spec&) {
           return in_mixed_precision(forward, DType::bf16, WeightCasts::shared,
                                     LinearLayers::in_8_bits);
         },
     .why_not_engaged = why_no_8_bits,
     .why_not_lowered =
         [](const Program& lowered, const Spec&) {
           return why_not_mixed_precision(lowered, DType::bf16, LinearLayers::in_8_bits);
         },
     .breaks =
         "the operands of linear layers are rounded to 4 bits and gradients to 3; other products "
         "and activations to 8. Emulated on host, where times say nothing about a GPU"});

}  // namespace
}  // namespace headroom
