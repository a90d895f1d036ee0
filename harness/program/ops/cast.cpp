// The same tensor in another element type, rounded to nearest even.
#include "harness/program/ops/rules.h"

namespace headroom {
namespace {

using namespace rules;

std::vector<Value> infer_cast(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  const DType from = real_type(inputs);
  const auto to = static_cast<DType>(op.integer("to"));
  require(to == DType::f32 || to == DType::bf16 || to == DType::f16,
          "casts to f32, bf16 or f16, not to element type {}", op.integer("to"));
  require(from != to, "'{}' is {} already", inputs[0].name, to_string(to));
  // A copy of something kept between steps is scratch: it is no second weight.
  if (inputs[0].persistent) return {made(inputs[0].shape, Role::workspace, to)};
  const Role role = inputs[0].role == Role::input ? Role::activation : inputs[0].role;
  return {made(inputs[0].shape, role, to)};
}

// A weight's gradient arrives in f32 where the product that made it could leave it so.
std::vector<ValueId> differentiate_cast(GradientContext& context) {
  const Program& program = context.builder.program();
  const Value x = program.value(context.op.inputs[0]);
  const ValueId dy = context.d_outputs[0];
  if (program.value(dy).dtype == x.dtype) return {dy};
  const ValueId dx = context.builder.emit_one("cast", context.op.name + ".backward", {dy},
                                              {{"to", static_cast<std::int64_t>(x.dtype)}});
  if (x.role == Role::weight) set_role(context.builder, dx, Role::gradient);
  return {dx};
}

const bool cast = Registry<OpDefinition>::instance().add(
    {.name = "cast",
     .summary = "x -> y, the same numbers in element type `to` (a DType), rounded to nearest even",
     .infer = infer_cast,
     .differentiate = differentiate_cast});

}  // namespace
}  // namespace headroom
