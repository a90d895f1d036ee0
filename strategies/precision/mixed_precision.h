// The common part of mixed-precision strategies: products in 16 bits, or linear layers in 8 bits,
// with weights kept in f32.
#pragma once

#include <string>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

enum class WeightCasts {
  shared,    // one copy of a weight in 16 bits per Program, kept to the backward pass
  each_use,  // a copy for each op that reads the weight, cast again in the backward pass
};

enum class LinearLayers {
  as_products,  // like convolutions and batched products
  in_8_bits,    // layers whose sizes a GPU supports multiply in 8 bits, the others as above
};

// Rewrites a forward pass: convolutions, linear layers and batched products read and write
// `reduced`, and so do the following ops up to the next op that must compute in f32 (losses,
// counts), with a cast wherever two types meet. A linear layer in 8 bits reads 8 bits and writes
// bf16, and requires `reduced` to be bf16.
Program in_mixed_precision(const Program& forward, DType reduced, WeightCasts casts,
                           LinearLayers linear = LinearLayers::as_products);

// cast_cache=on|off of a precision: whether casts are kept for the backward pass.
bool keeps_casts(const Spec& spec);

// Casts weights again right before each backward op that reads the copies.
Program cast_again_in_backward(Program program);

// Why a lowered Program is not what the two above promise: every product computes in `reduced`, or
// in 8 bits where it is meant to; every weight is kept in f32. Absent if it is.
Reason why_not_mixed_precision(const Program& lowered, DType reduced,
                               LinearLayers linear = LinearLayers::as_products);

}  // namespace headroom
