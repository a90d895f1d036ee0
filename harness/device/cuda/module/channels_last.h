// Which images a Program keeps channels-last. cuDNN's fast convolutions in 16 bits take images in
// this order, and turn those in another order before and after every call.
#pragma once

#include <functional>

#include "harness/program/program.h"

namespace headroom::cuda {

// Gives this layout to every image in 16 bits that a convolution reads or makes, and to all images
// that other ops require to be in the same order, if every op that reads or makes one of them has a
// kernel for it. A convolution that `runs` rejects gets row-major copies, made by the op "reorder".
// Inputs, results and persistent values stay row-major. `program` is lowered and fused; `runs` is
// called with convolutions that have channels-last operands.
Program keep_channels_last(Program program,
                           const std::function<bool(const Program&, const Op&)>& runs);

}  // namespace headroom::cuda
