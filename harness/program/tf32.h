// An attribute for f32 products that may round their operands to TF32 (10 fraction bits, the
// exponents of f32) in a GPU's tensor cores. The values stay f32.
#pragma once

#include "harness/program/op.h"

namespace headroom {

inline bool computes_in_tf32(const Op& op) { return op.attributes.contains("tf32"); }
inline void compute_in_tf32(Op& op) { op.attributes["tf32"] = std::int64_t{1}; }

}  // namespace headroom
