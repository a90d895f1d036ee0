// Where the single elements of a tensor lie in its layout: for loops that must know rows from
// columns, whatever blocks the library made of them.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/program/value.h"

namespace headroom::onednn {

// The tensor as a matrix: its first dimension by all others, a vector as one row. Element (i, j)
// is at rows[i] + columns[j]; padding is at none of them.
struct MatrixPlaces {
  std::vector<std::size_t> rows, columns;
};
// Throws NotSupported where the library keeps these places to itself.
MatrixPlaces matrix_places(const Value& value);

}  // namespace headroom::onednn
