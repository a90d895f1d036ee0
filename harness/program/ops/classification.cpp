// The loss of a classifier and the number of correct predictions.
#include "harness/program/ops/rules.h"

namespace headroom::classification_op {
namespace {

using namespace rules;

void require_logits_and_labels(std::span<const Value> inputs, std::string_view first) {
  require_operands(inputs, {{first, 2}, {"labels", 1, DType::s32}});
  require_shape(inputs[1], "labels", {inputs[0].shape[0]});
}

std::vector<Value> infer_loss(const Op&, std::span<const Value> inputs) {
  require_logits_and_labels(inputs, "logits");
  return {made({1}, Role::result), made(inputs[0].shape)};
}

std::vector<Value> infer_loss_backward(const Op&, std::span<const Value> inputs) {
  require_logits_and_labels(inputs, "probabilities");
  return {made(inputs[0].shape, Role::activation_gradient)};
}

std::vector<Value> infer_count(const Op&, std::span<const Value> inputs) {
  require_logits_and_labels(inputs, "logits");
  return {made({1}, Role::result)};
}

std::vector<ValueId> differentiate_loss(GradientContext& context) {
  require_gradient_of_first_output_only(context);
  const Op& op = context.op;
  require(context.d_outputs[0] == kNoValue,
          "{} ({}): must be the loss itself, nothing may be computed from it", op.name, op.kind);
  return {context.builder.emit_one("softmax_cross_entropy_backward", op.name + ".backward",
                                   {op.outputs[1], op.inputs[1]}),
          kNoValue};
}

const bool loss = Registry<OpDefinition>::instance().add(
    {.name = "softmax_cross_entropy",
     .summary = "logits[N,K], labels s32[N] -> loss[1] (mean over rows whose label is not -1), "
                "probabilities[N,K], 0 in rows of label -1",
     .infer = infer_loss,
     .differentiate = differentiate_loss,
     .makes_loss = true});

const bool loss_backward = Registry<OpDefinition>::instance().add(
    {.name = "softmax_cross_entropy_backward",
     .summary = "probabilities[N,K], labels s32[N] -> dlogits[N,K], already divided by the rows "
                "that count; 0 in rows of label -1",
     .infer = infer_loss_backward});

const bool loss_and_gradient = Registry<OpDefinition>::instance().add(
    {.name = "softmax_cross_entropy_and_gradient",
     .summary = "logits[N,K], labels s32[N] -> loss[1] and dlogits[N,K], as the two ops make them; "
                "made by lowering, not for workloads",
     .infer = [](const Op&, std::span<const Value> inputs) -> std::vector<Value> {
       require_logits_and_labels(inputs, "logits");
       return {made({1}, Role::result), made(inputs[0].shape, Role::activation_gradient)};
     }});

std::vector<Value> infer_sigmoid(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes logits, not {} operands", inputs.size());
  require_operands(inputs, {{"logits", inputs[0].shape.size()}});
  require(op.number("target") >= 0 && op.number("target") <= 1, "target must lie in 0 to 1");
  return {made({1}, Role::result)};
}

std::vector<Value> infer_sigmoid_backward(const Op& op, std::span<const Value> inputs) {
  infer_sigmoid(op, inputs);
  return {made(inputs[0].shape, Role::activation_gradient)};
}

const bool sigmoid = Registry<OpDefinition>::instance().add(
    {.name = "sigmoid_cross_entropy",
     .summary = "logits -> loss[1], the mean of -log of sigmoid(logit) for target 1 and of "
                "1 - sigmoid(logit) for target 0, mixed in between; target",
     .infer = infer_sigmoid,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       const Op& op = context.op;
       require(context.d_outputs[0] == kNoValue,
               "{} ({}): must be a loss itself, nothing may be computed from it", op.name, op.kind);
       return {context.builder.emit_one("sigmoid_cross_entropy_backward", op.name + ".backward",
                                        {op.inputs[0]}, op.attributes)};
     },
     .makes_loss = true});

const bool sigmoid_backward = Registry<OpDefinition>::instance().add(
    {.name = "sigmoid_cross_entropy_backward",
     .summary = "logits -> dlogits = (sigmoid(logit) - target) / count; target",
     .infer = infer_sigmoid_backward});

const bool labels = Registry<OpDefinition>::instance().add(
    {.name = "count_labels",
     .summary = "labels s32[N] -> count[1] of rows whose label is not -1",
     .infer = [](const Op&, std::span<const Value> inputs) -> std::vector<Value> {
       require_operands(inputs, {{"labels", 1, DType::s32}});
       return {made({1})};
     }});

const bool count = Registry<OpDefinition>::instance().add(
    {.name = "count_correct",
     .summary = "logits[N,K], labels s32[N] -> count[1] of rows whose largest logit is the label's",
     .infer = infer_count});

}  // namespace
}  // namespace headroom::classification_op
