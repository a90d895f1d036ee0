#include "workloads/transformer.h"

#include <cmath>

namespace headroom {

ValueId Transformer::token_input(const std::string& name) {
  return builder_.input(name, {tokens()}, DType::s32);
}

void Transformer::take_key() {
  if (size_.dropout > 0) key_ = builder_.input("dropout_key", {2}, DType::s32);
}

ValueId Transformer::table(const std::string& name, std::int64_t rows) {
  return builder_.persistent(name + ".weight", {rows, size_.hidden}, Role::weight,
                             {Fill::normal, kDeviation});
}

ValueId Transformer::look_up(const std::string& name, ValueId table, ValueId numbers) {
  return builder_.emit_one("gather_rows", name, {table, numbers});
}

ValueId Transformer::linear(const std::string& name, ValueId x, std::int64_t outputs,
                            double deviation) {
  const std::int64_t inputs = builder_.program().value(x).shape[1];
  const ValueId weight = builder_.persistent(name + ".weight", {outputs, inputs}, Role::weight,
                                             {Fill::normal, deviation});
  return builder_.emit_one("linear", name, {x, weight, zeros(name + ".bias", outputs)});
}

ValueId Transformer::zeros(const std::string& name, std::int64_t count) {
  return builder_.persistent(name, {count}, Role::weight, {Fill::constant, 0});
}

ValueId Transformer::norm(const std::string& name, ValueId x) {
  const ValueId scale =
      builder_.persistent(name + ".scale", {size_.hidden}, Role::weight, {Fill::constant, 1});
  return builder_.emit("layer_norm", name, {x, scale, zeros(name + ".shift", size_.hidden)},
                       {{"epsilon", size_.epsilon}})[0];
}

ValueId Transformer::add(const std::string& name, ValueId a, ValueId b) {
  return builder_.emit_one("add", name, {a, b});
}

ValueId Transformer::dropout(const std::string& name, ValueId x) {
  if (size_.dropout == 0) return x;
  return builder_.emit("dropout", name, {x, key_},
                       {{"rate", size_.dropout}, {"stream", next_stream_++}})[0];
}

ValueId Transformer::scores_to_weights(const std::string& name, ValueId scores) {
  const std::int64_t width = size_.hidden / size_.heads;
  const Attributes scale = {{"scale", 1 / std::sqrt(static_cast<double>(width))}};
  if (mask_ == kNoValue) return builder_.emit_one("causal_softmax", name, {scores}, scale);
  return builder_.emit_one("masked_softmax", name, {scores, mask_}, scale);
}

ValueId Transformer::attention(const std::string& name, ValueId x, double deviation) {
  const ValueId query = linear(name + ".query", x, size_.hidden);
  const ValueId key = linear(name + ".key", x, size_.hidden);
  const ValueId value = linear(name + ".value", x, size_.hidden);
  const Shape batch = {size_.batch, size_.heads};
  const ValueId scores = builder_.emit_one(
      "batched_matmul", name + ".scores", {query, key},
      {{"batch", batch}, {"transposed", Shape{0, 1}}, {"merged", Shape{1, 1, 0}}});
  const ValueId weights =
      dropout(name + ".softmax.dropout", scores_to_weights(name + ".softmax", scores));
  const ValueId context = builder_.emit_one(
      "batched_matmul", name + ".context", {weights, value},
      {{"batch", batch}, {"transposed", Shape{0, 0}}, {"merged", Shape{0, 1, 1}}});
  return dropout(name + ".dropout", linear(name + ".output", context, size_.hidden, deviation));
}

ValueId Transformer::feed_forward(const std::string& name, ValueId x, double deviation) {
  const ValueId inner = linear(name + ".inner", x, 4 * size_.hidden);
  const ValueId y = builder_.emit_one("gelu", name + ".gelu", {inner});
  return dropout(name + ".dropout", linear(name + ".output", y, size_.hidden, deviation));
}

}  // namespace headroom
