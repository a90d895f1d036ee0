// Distances between the matrices of a product's three operands. A kernel computes the addresses of
// the matrices from them.
#pragma once

#include <array>
#include <cstdint>

namespace headroom::cuda {

// Distances in bytes.
struct MatrixPlace {
  std::int64_t from_call_to_call, from_matrix_to_matrix;
};
using MatrixPlaces = std::array<MatrixPlace, 3>;

}  // namespace headroom::cuda
