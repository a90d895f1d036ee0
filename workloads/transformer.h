// The layers that BERT and GPT share. Token-major throughout: activations are
// [batch·sequence, hidden], and attention strides through them head by head, so that no tensor is
// reshaped or transposed.
#pragma once

#include <cstdint>
#include <string>

#include "harness/program/program.h"

namespace headroom {

struct TransformerSize {
  std::int64_t batch, sequence, hidden, heads;
  double dropout;  // 0: no dropout ops at all
  double epsilon;  // for the normalisations
};

class Transformer {
 public:
  Transformer(Program& program, const TransformerSize& size) : builder_(program), size_(size) {}

  ProgramBuilder& builder() { return builder_; }
  std::int64_t tokens() const { return size_.batch * size_.sequence; }
  // Adds an s32 input with the tokens' shape [batch·sequence].
  ValueId token_input(const std::string& name);
  // Adds the input `dropout_key` [2] from which dropout draws, unless there is no dropout. Must be
  // called before the first dropout.
  void take_key();
  // Sets the mask that excludes padding from attention: s32 [batch, sequence], 0 for padding.
  // Without it, attention is causal: no token sees a later one.
  void attend_where(ValueId mask) { mask_ = mask; }

  // table() adds a table [rows, hidden]; look_up() gathers its rows with these numbers.
  ValueId table(const std::string& name, std::int64_t rows);
  ValueId look_up(const std::string& name, ValueId table, ValueId numbers);

  // Linear layer with bias, x[N, inputs] → [N, outputs]; weights from a normal distribution.
  ValueId linear(const std::string& name, ValueId x, std::int64_t outputs,
                 double deviation = kDeviation);
  ValueId zeros(const std::string& name, std::int64_t count);
  ValueId norm(const std::string& name, ValueId x);
  ValueId add(const std::string& name, ValueId a, ValueId b);
  ValueId dropout(const std::string& name, ValueId x);  // each call draws from a separate stream

  // Both include the product that follows and its dropout; `deviation` initialises that product's
  // weights.
  ValueId attention(const std::string& name, ValueId x, double deviation = kDeviation);
  ValueId feed_forward(const std::string& name, ValueId x, double deviation = kDeviation);

  static constexpr double kDeviation = 0.02;  // from BERT's and GPT's published code

 private:
  ValueId scores_to_weights(const std::string& name, ValueId scores);

  ProgramBuilder builder_;
  TransformerSize size_;
  ValueId mask_ = kNoValue;
  ValueId key_ = kNoValue;
  std::int64_t next_stream_ = 0;
};

}  // namespace headroom
