// TF32 (NVIDIA 2020, "NVIDIA A100 Tensor Core GPU Architecture"): all values are kept in f32, and
// convolutions, linear layers and batched products may round their operands to 10 bits of fraction
// for a GPU's tensor cores; sums stay f32. Only the bytes of workspaces change. PyTorch does this
// by default for convolutions, TensorFlow for all products. The library decides which products
// benefit: only those are rounded. Evaluation runs in f32.
#include <fmt/format.h>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "harness/program/tf32.h"

namespace headroom {
namespace {

bool is_product(const Op& op) {
  return Registry<OpDefinition>::instance().find(op.kind).flops != nullptr;
}

Program allow_tf32(Program program, const Spec&) {
  for (Op& op : program.ops)
    if (is_product(op)) compute_in_tf32(op);
  return program;
}

Reason why_not_tf32(const Program& lowered, const Spec&) {
  int products = 0;
  for (const Op& op : lowered.ops) {
    if (!is_product(op)) continue;
    if (!computes_in_tf32(op)) return fmt::format("{} ({}) does not allow TF32", op.name, op.kind);
    ++products;
  }
  return unless(products > 0, "the step has no product that could compute in fewer bits");
}

const bool tf32_is_registered = Registry<PrecisionStrategy>::instance().add(
    {.name = "tf32",
     .summary = "Products may round their fp32 operands to TF32 in the tensor cores of a GPU. Only "
                "on cuda",
     .parameters = {},
     .examples = {"tf32"},
     .apply = allow_tf32,
     .refuses = {{.axis = "device", .name = "host", .why = "a CPU has no TF32"},
                 {.axis = "device",
                  .name = "meta",
                  .why = "nothing is computed there, and its bytes would be those of fp32"}},
     .apply_to_gradients = allow_tf32,
     .why_not_lowered = why_not_tf32,
     .breaks = "products may round their operands to 11 bits"});

}  // namespace
}  // namespace headroom
