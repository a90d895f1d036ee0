// Converts a tensor to another element type, rounding to nearest even. 8-bit types need a scale,
// which is computed from the tensor itself: its largest magnitude becomes the largest number of the
// type. A scale from earlier steps (an option in Micikevicius et al. 2022 and NVIDIA's Transformer
// Engine) saves reading the tensor twice on a GPU, but it adds a state per tensor, is wrong in the
// first steps, and recomputing a forward pass would not give the same numbers.
#include "harness/program/ops/rules.h"

namespace headroom::cast_op {
namespace {

using namespace rules;

// A copy of a persistent value is scratch: it does not count as a second weight.
Role role_of_copy(const Value& x) {
  if (x.persistent) return Role::workspace;
  return x.role == Role::input ? Role::activation : x.role;
}

std::vector<Value> infer_cast(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  const DType from = real_type(inputs);
  const auto to = static_cast<DType>(op.integer("to"));
  require(to == DType::f32 || to == DType::bf16 || to == DType::f16,
          "casts to f32, bf16 or f16, not to element type {}", op.integer("to"));
  require(from != to, "'{}' is {} already", inputs[0].name, to_string(to));
  return {made(inputs[0].shape, role_of_copy(inputs[0]), to)};
}

std::vector<Value> infer_quantise(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  real_type(inputs);
  const auto to = static_cast<DType>(op.integer("to"));
  require(is_f8(to), "quantises to f8e4m3 or f8e5m2, not to element type {}", op.integer("to"));
  const Role role = role_of_copy(inputs[0]);
  return {made(inputs[0].shape, role, to), made({1}, role)};
}

// A gradient passes through as if nothing had been rounded. A weight's gradient arrives in f32
// where the product that made it can write f32.
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

const bool quantise = Registry<OpDefinition>::instance().add(
    {.name = "quantise",
     .summary =
         "x -> codes in element type `to` (f8e4m3, f8e5m2), scale[1]: x is about codes scale; "
         "with m the largest magnitude in x and r the largest number of the type, inverse = "
         "min(r / m, 2^126), or 1 where m is 0, codes = x inverse rounded to nearest even, "
         "scale = 1 / inverse, all in f32; not finite where x is not",
     .infer = infer_quantise,
     .differentiate = differentiate_cast});

}  // namespace
}  // namespace headroom::cast_op
