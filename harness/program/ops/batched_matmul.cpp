// One matrix product per sample and attention head. Heads are never split into a separate tensor:
// an operand that is `merged` keeps the shape that a linear layer gives it, [batch·rows,
// heads·columns], and the product strides through it.
#include "harness/program/ops/matmul_view.h"
#include "harness/program/ops/rules.h"

namespace headroom::batched_matmul_op {
namespace {

using namespace rules;

struct Product {
  std::int64_t rows, inner, columns;
};

MatmulView view(const Op& op, std::size_t operand, const Value& value) {
  const auto& batch = op.list("batch");
  const std::int64_t merged = op.list("merged")[operand];
  const Shape& shape = value.shape;
  if (merged != 0)
    require(shape.size() == 2 && shape[0] % batch[0] == 0 && shape[1] % batch[1] == 0,
            "'{}' {} does not hold {} samples of {} heads side by side", value.name,
            to_string(shape), batch[0], batch[1]);
  else
    require(shape.size() == 4 && shape[0] == batch[0] && shape[1] == batch[1],
            "'{}' {} does not hold a matrix for each of {} samples and {} heads", value.name,
            to_string(shape), batch[0], batch[1]);
  return matmul_view(op, operand, shape);
}

Product product(const Op& op, std::span<const Value> inputs) {
  const MatmulView a = view(op, 0, inputs[0]);
  const MatmulView b = view(op, 1, inputs[1]);
  require(a.columns == b.rows, "a has {} columns, but b has {} rows", a.columns, b.rows);
  return {a.rows, a.columns, b.columns};
}

std::vector<Value> infer(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes a and b, not {} operands", inputs.size());
  const DType real = real_type(inputs);
  require_operands(inputs,
                   {{"a", inputs[0].shape.size(), real}, {"b", inputs[1].shape.size(), real}});
  const auto& batch = op.list("batch");
  require(batch.size() == 2 && batch[0] > 0 && batch[1] > 0, "batch must be samples, heads");
  require(op.list("transposed").size() == 2, "transposed must have a value for a and for b");
  require(op.list("merged").size() == 3, "merged must have a value for a, b and y");
  const Product p = product(op, inputs);
  const bool gradient =
      inputs[0].role == Role::activation_gradient || inputs[1].role == Role::activation_gradient;
  const Role role = gradient ? Role::activation_gradient : Role::activation;
  if (op.list("merged")[2] != 0)
    return {made({batch[0] * p.rows, batch[1] * p.columns}, role, real)};
  return {made({batch[0], batch[1], p.rows, p.columns}, role, real)};
}

std::vector<ValueId> differentiate_product(GradientContext& context) {
  const Op& op = context.op;
  const ValueId a = op.inputs[0], b = op.inputs[1], dy = context.d_outputs[0];
  const std::int64_t ta = op.list("transposed")[0], tb = op.list("transposed")[1];
  const std::int64_t ma = op.list("merged")[0], mb = op.list("merged")[1],
                     my = op.list("merged")[2];
  const auto emit = [&](const char* suffix, ValueId of, std::vector<ValueId> operands,
                        Shape transposed, Shape merged) {
    const ValueId made =
        context.builder.emit_one("batched_matmul", op.name + suffix, std::move(operands),
                                 {{"batch", op.list("batch")},
                                  {"transposed", std::move(transposed)},
                                  {"merged", std::move(merged)}});
    const bool weight = context.builder.program().value(of).role == Role::weight;
    set_role(context.builder, made, weight ? Role::gradient : Role::activation_gradient);
    return made;
  };
  std::vector<ValueId> gradients = {kNoValue, kNoValue};
  if (context.wanted[0])
    gradients[0] = ta == 0 ? emit(".backward_a", a, {dy, b}, {0, 1 - tb}, {my, mb, ma})
                           : emit(".backward_a", a, {b, dy}, {tb, 1}, {mb, my, ma});
  if (context.wanted[1])
    gradients[1] = tb == 0 ? emit(".backward_b", b, {a, dy}, {1 - ta, 0}, {ma, my, mb})
                           : emit(".backward_b", b, {dy, a}, {1, ta}, {my, ma, mb});
  return gradients;
}

const bool registered = Registry<OpDefinition>::instance().add(
    {.name = "batched_matmul",
     .summary = "a, b -> y = a b for each sample and head; batch[2] = samples, heads; "
                "transposed[2]: a, b; merged[3]: a, b, y are [samples rows, heads columns] "
                "instead of [samples, heads, rows, columns]",
     .infer = infer,
     .differentiate = differentiate_product,
     .flops = [](const Op& op, std::span<const Value> inputs, std::span<const Value>) {
       const Product p = product(op, inputs);
       const auto product = [](std::initializer_list<std::int64_t> numbers) {
         double result = 1;  // double, because 64-bit integers may overflow
         for (const std::int64_t number : numbers) result *= static_cast<double>(number);
         return result;
       };
       return 2.0 * product({op.list("batch")[0], op.list("batch")[1], p.rows, p.inner, p.columns});
     }});

}  // namespace
}  // namespace headroom::batched_matmul_op
