// Moves a value out of device memory and back, with the same numbers and layout.
#include "harness/program/ops/rules.h"

namespace headroom::offload_op {
namespace {

using namespace rules;

std::vector<Value> infer_copy(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  require(!inputs[0].persistent, "'{}' lives across steps and cannot be offloaded", inputs[0].name);
  return {made(inputs[0].shape, inputs[0].role, inputs[0].dtype)};
}

const bool copy_out = Registry<OpDefinition>::instance().add(
    {.name = "copy_out",
     .summary = "x -> y, the same bytes in memory of the host, where only copy_in reads them",
     .infer = infer_copy});

const bool copy_in = Registry<OpDefinition>::instance().add(
    {.name = "copy_in",
     .summary = "y of copy_out -> x, the same bytes on the device again",
     .infer = infer_copy});

}  // namespace
}  // namespace headroom::offload_op
