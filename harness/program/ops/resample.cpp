// Enlarges images by repeating pixels and shrinks them by summing neighbours. Each kind is the
// derivative of the other; with scale 1/factor² a sum is the average.
#include "harness/program/ops/rules.h"

namespace headroom::resample_op {
namespace {

using namespace rules;

std::int64_t factor_of(const Op& op) {
  op.number("scale");  // throws when absent
  const std::int64_t factor = op.integer("factor");
  require(factor > 0, "factor must be positive, not {}", factor);
  return factor;
}

// Gradients stay gradients.
Value resampled(const Value& x, std::int64_t height, std::int64_t width) {
  const Role role =
      x.role == Role::activation_gradient ? Role::activation_gradient : Role::activation;
  return made({x.shape[0], x.shape[1], height, width}, role, x.dtype);
}

std::vector<Value> infer_upsample(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"x", 4, real_type(inputs)}});
  const std::int64_t factor = factor_of(op);
  const Shape& x = inputs[0].shape;
  return {resampled(inputs[0], factor * x[2], factor * x[3])};
}

std::vector<Value> infer_sum_pool(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"x", 4, real_type(inputs)}});
  const std::int64_t factor = factor_of(op);
  const Shape& x = inputs[0].shape;
  require(x[2] % factor == 0 && x[3] % factor == 0, "images of {}x{} do not fall into {}x{} parts",
          x[2], x[3], factor, factor);
  return {resampled(inputs[0], x[2] / factor, x[3] / factor)};
}

template <const char* kInverse>
std::vector<ValueId> differentiate(GradientContext& context) {
  const Op& op = context.op;
  const ValueId dx = context.builder.emit_one(kInverse, op.name + ".backward",
                                              {context.d_outputs[0]}, op.attributes);
  set_role(context.builder, dx, Role::activation_gradient);
  return {dx};
}

constexpr char kUpsample[] = "upsample";
constexpr char kSumPool[] = "sum_pool";

const bool upsample = Registry<OpDefinition>::instance().add(
    {.name = kUpsample,
     .summary = "x[N,C,H,W] -> y[N,C,fH,fW], scale times the nearest pixel; factor f, scale",
     .infer = infer_upsample,
     .differentiate = differentiate<kSumPool>});

const bool sum_pool = Registry<OpDefinition>::instance().add(
    {.name = kSumPool,
     .summary = "x[N,C,fH,fW] -> y[N,C,H,W], scale times the sum of each f by f pixels; factor f, "
                "scale",
     .infer = infer_sum_pool,
     .differentiate = differentiate<kUpsample>});

}  // namespace
}  // namespace headroom::resample_op
