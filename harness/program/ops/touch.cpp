#include "harness/program/ops/rules.h"

namespace headroom::touch_op {
namespace {

using namespace rules;

const bool touch = Registry<OpDefinition>::instance().add(
    {.name = "touch",
     .summary = "-> y u8[bytes], every page of it written once; its operands live until here",
     .infer = [](const Op& op, std::span<const Value>) -> std::vector<Value> {
       require(op.integer("bytes") > 0, "bytes must be positive, not {}", op.integer("bytes"));
       return {made({op.integer("bytes")}, Role::activation, DType::u8)};
     }});

}  // namespace
}  // namespace headroom::touch_op
