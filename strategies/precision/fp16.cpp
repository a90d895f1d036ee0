// Mixed precision in fp16 with a loss scale (Micikevicius et al. 2018, "Mixed Precision Training"):
// products read and write IEEE half precision and sum in f32; master weights, optimizer states and
// the gradients of weights stay in f32. The same ops take part as with bf16 (see bf16.cpp).
//
// fp16 has five bits of exponent: gradients below 6e-8 vanish and numbers above 65504 are infinite.
// The gradient of the loss is therefore multiplied by a scale and the gradients of weights divided
// by it; a step in which one of them overflowed is skipped, and counted (figure skipped_steps). The
// decision is made on the device, so that the host need not wait for it.
//
// On host fp16 is emulated: oneDNN 2 does not compute with it on CPUs, so each of its ops works on
// f32 copies of its operands in its workspace, and rounds. Kept values take 2 bytes per element,
// and rounding is that of fp16; workspaces are larger and times are not those of fp16 hardware.
// Under dense rules there are no such copies.
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/precision/loss_scaling.h"
#include "strategies/precision/mixed_precision.h"

namespace headroom {
namespace {

const bool fp16_is_registered = Registry<PrecisionStrategy>::instance().add(
    {.name = "fp16",
     .summary = "Products and the activations between them are fp16; weights stay fp32. Losses are "
                "scaled, and steps that overflow are skipped. Emulated on host",
     .parameters = loss_scaling::parameters({"cast_cache"}),
     .examples = {"fp16", "fp16(loss_scale=1024)"},
     .apply =
         [](const Program& forward, const Spec& spec) {
           return in_mixed_precision(
               forward, DType::f16,
               keeps_casts(spec) ? WeightCasts::shared : WeightCasts::each_use);
         },
     .finish = loss_scaling::guard_update,
     .apply_to_gradients =
         [](Program program, const Spec& spec) {
           program = loss_scaling::scale_losses(std::move(program), spec);
           return keeps_casts(spec) ? program : cast_again_in_backward(std::move(program));
         },
     .why_not_lowered =
         [](const Program& lowered, const Spec&) {
           const Reason why = why_not_mixed_precision(lowered, DType::f16);
           return why ? why : loss_scaling::why_not_guarded(lowered);
         },
     .breaks = "products and activations are rounded to 11 bits; a step whose gradients overflow "
               "is skipped"});

}  // namespace
}  // namespace headroom
