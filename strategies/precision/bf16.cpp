// Mixed precision in bfloat16 (Kalamkar et al. 2019, "A Study of BFLOAT16 for Deep Learning
// Training"): products read and write 16 bits and sum in f32; weights, optimizer states and the
// gradients of weights stay in f32. bf16 has the exponents of f32, so no loss has to be scaled.
//
// As PyTorch's autocast: convolutions, linear layers and batched products compute in bf16; losses
// in f32; relu, pooling, dropout and batch normalisation in the type they are given; a weight is
// cast once per forward pass (cast_cache=on) and the copy kept for the backward pass.
// Other than autocast:
// - layer_norm and the softmaxes take and give bf16 (f32 inside), and a sum of f32 and bf16 is
// bf16,
//   so that what is kept for the backward pass is halved there too; a residual stream is therefore
//   rounded at each addition, which autocast does in convolutional networks only;
// - gradients of weights come out of the product in f32 (oneDNN and cuDNN sum in f32 anyway):
//   autocast rounds them to 16 bits and casts back, which costs a rounding and, for a moment, a
//   second copy; biases stay f32. On cuda those of convolutions are rounded so, too: cuDNN gives a
//   result in its operands' type;
// - cast_cache=off casts weights again for each op that reads them, in the backward pass too:
//   no 16-bit copy of the weights is kept, for the price of casting twice.
// Evaluation runs in f32 from the weights as they are kept.
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
