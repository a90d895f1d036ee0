// What strategies of mixed precision share: products computed in 16 bits, or linear layers in 8,
// and weights kept in f32.
#pragma once

#include <string>

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

enum class WeightCasts {
  shared,    // one copy of a weight in 16 bits per Program, kept to the backward pass
  each_use,  // a copy for each op that reads the weight, made again in the backward pass
};

enum class LinearLayers {
  as_products,  // as convolutions and batched products
  in_8_bits,    // those that fit the units of a GPU for it multiply in 8 bits, the others as above
};

// Rewrites a forward pass: convolutions, linear layers and batched products read and write
// `reduced`, and so does what comes after them up to the next op that has to compute in f32
// (losses, counts), with a cast wherever two types meet. A linear layer in 8 bits reads them and
// writes bf16, which `reduced` must be then.
Program in_mixed_precision(const Program& forward, DType reduced, WeightCasts casts,
                           LinearLayers linear = LinearLayers::as_products);

// cast_cache=on|off of a precision: whether the backward pass finds the copies again.
bool keeps_casts(const Spec& spec);

// Makes the copies of weights that backward ops read anew, right before each of them.
Program cast_again_in_backward(Program program);

// Why a lowered Program is not what the two above promise: every product computes in `reduced`, or
// in 8 bits where it is meant to; every weight is kept in f32. "" = it is.
std::string why_not_mixed_precision(const Program& lowered, DType reduced,
                                    LinearLayers linear = LinearLayers::as_products);

}  // namespace headroom
