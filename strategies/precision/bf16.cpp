// Mixed precision in bfloat16 (Kalamkar et al. 2019, "A Study of BFLOAT16 for Deep Learning
// Training"): products read and write 16 bits and sum in f32; weights, optimizer states and the
// gradients of weights stay in f32. bf16 has the exponents of f32, so no loss scaling is needed.
//
// As in PyTorch's autocast: convolutions, linear layers and batched products compute in bf16;
// losses in f32; relu, pooling, dropout and batch normalisation in the type they are given; a
// weight is cast once per forward pass (cast_cache=on) and the copy kept for the backward pass.
// Differences from autocast:
// - layer_norm and the softmaxes read and write bf16 (f32 inside), and a sum of f32 and bf16 is
//   bf16, which also halves the values that these ops keep for the backward pass; a residual stream
//   is therefore rounded at each addition, which autocast does only in convolutional networks;
// - products write gradients of weights in f32 (oneDNN and cuDNN sum in f32 anyway): autocast
//   rounds them to 16 bits and casts back, which costs a rounding and temporarily a second copy;
//   biases stay f32. On cuda the gradients of convolutions' weights are also rounded, because cuDNN
//   returns results in its operands' type;
// - cast_cache=off casts weights again for each op that reads them, also in the backward pass: no
//   16-bit copy of the weights is kept, at the cost of casting twice.
// Evaluation runs in f32 from the stored weights.
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/precision/mixed_precision.h"

namespace headroom {
namespace {

const bool bf16_is_registered = Registry<PrecisionStrategy>::instance().add(
    {.name = "bf16",
     .summary = "Products and the activations between them are bfloat16; weights stay fp32. "
                "cast_cache=off casts weights again in the backward pass",
     .parameters = {"cast_cache"},
     .examples = {"bf16", "bf16(cast_cache=off)"},
     .apply =
         [](const Program& forward, const Spec& spec) {
           return in_mixed_precision(
               forward, DType::bf16,
               keeps_casts(spec) ? WeightCasts::shared : WeightCasts::each_use);
         },
     .apply_to_gradients =
         [](Program program, const Spec& spec) {
           return keeps_casts(spec) ? program : cast_again_in_backward(std::move(program));
         },
     .why_not_lowered = [](const Program& lowered,
                           const Spec&) { return why_not_mixed_precision(lowered, DType::bf16); },
     .breaks = "products and activations are rounded to 8 bits"});

}  // namespace
}  // namespace headroom
