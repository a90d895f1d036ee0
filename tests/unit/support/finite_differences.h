// Derivatives from their definition, in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/unit/reference/reference.h"

namespace headroom::testing {

// d(scalar)/d(tensor[i]) by central differences, for the requested elements. NaN where the left and
// right slopes differ by more than `tolerance` (relative to 1 + the slope), because a kink of relu
// or max_pool has no derivative. An undetected kink causes an error of at most half of that; a
// smooth scalar one of step^2/6 times its third derivative, plus rounding of about 1e-15/step.
template <typename Scalar>
Tensor finite_differences(Tensor& tensor, const std::vector<std::size_t>& elements, double step,
                          double tolerance, Scalar scalar) {
  Tensor slopes;
  for (const std::size_t i : elements) {
    const double kept = tensor[i];
    const double here = scalar();
    tensor[i] = kept + step;
    const double right = (scalar() - here) / step;
    tensor[i] = kept - step;
    const double left = (here - scalar()) / step;
    tensor[i] = kept;
    const bool kink = std::abs(right - left) > tolerance * (1 + std::abs(right));
    slopes.push_back(kink ? std::nan("") : (left + right) / 2);
  }
  return slopes;
}

}  // namespace headroom::testing
