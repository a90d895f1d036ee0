// Declarations shared by the files of the reference: one op being run, and the kinds that each file
// implements.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/unit/reference/reference.h"

namespace headroom::testing {

using Index = std::int64_t;

// What one op reads and writes, as tensors.
struct Run {
  const Program& program;
  const Op& op;
  Tensors& tensors;

  const Shape& shape(std::size_t i) const { return program.value(op.inputs[i]).shape; }
  const Shape& out_shape(std::size_t i) const { return program.value(op.outputs[i]).shape; }
  Tensor& in(std::size_t i) const { return tensors[op.inputs[i]]; }
  Tensor& out(std::size_t i) const {
    Tensor& tensor = tensors[op.outputs[i]];
    tensor.assign(static_cast<std::size_t>(element_count(out_shape(i))), 0.0);
    return tensor;
  }
};

using Kinds = std::map<std::string, void (*)(const Run&)>;
Kinds image_kinds();        // convolution, normalisation over a batch, pooling
Kinds dense_kinds();        // linear layers and losses
Kinds text_kinds();         // rows, attention, activations, dropout, copies
Kinds update_kinds();       // updates of weights and states
Kinds update_list_kinds();  // updates of many weights at once
Kinds eight_bit_kinds();

}  // namespace headroom::testing
