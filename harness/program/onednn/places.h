// Offsets of the single elements of a tensor in its layout, for loops that need rows and columns
// whatever the library's blocking.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/program/value.h"

namespace headroom::onednn {

// The tensor as a matrix: its first dimension by all others; a vector is one row. Element (i, j) is
// at offset rows[i] + columns[j]. Padding is not included.
struct MatrixPlaces {
  std::vector<std::size_t> rows, columns;
};
// Throws NotSupported where the library does not disclose the layout.
MatrixPlaces matrix_places(const Value& value);

}  // namespace headroom::onednn
