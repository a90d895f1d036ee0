// Where the matrices of a product's three operands lie, for the kernel that writes down their
// addresses.
#pragma once

#include <array>
#include <cstdint>

namespace headroom::cuda {

// In bytes.
struct MatrixPlace {
  std::int64_t from_call_to_call, from_matrix_to_matrix;
};
using MatrixPlaces = std::array<MatrixPlace, 3>;

}  // namespace headroom::cuda
