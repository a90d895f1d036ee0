// How batched_matmul views an operand: the only code that turns its attributes into strides. Used
// by the shape rule and by the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "harness/program/op.h"

namespace headroom {

// Element (sample, head, row, column) lies at the sum of index · stride; transposition included.
struct MatmulView {
  std::int64_t rows, columns;
  std::int64_t sample_stride, head_stride, row_stride, column_stride;
};

// Operands 0 and 1 are a and b, 2 is y. The attributes and the shape must have passed the shape
// rule.
inline MatmulView matmul_view(const Op& op, std::size_t operand, const Shape& shape) {
  const std::int64_t samples = op.list("batch")[0], heads = op.list("batch")[1];
  MatmulView view{};
  if (op.list("merged")[operand] != 0) {
    view.rows = shape[0] / samples;
    view.columns = shape[1] / heads;
    view.head_stride = view.columns;
    view.row_stride = shape[1];
    view.sample_stride = view.rows * shape[1];
  } else {
    view.rows = shape[2];
    view.columns = shape[3];
    view.row_stride = view.columns;
    view.head_stride = view.rows * view.columns;
    view.sample_stride = heads * view.head_stride;
  }
  view.column_stride = 1;
  if (operand < 2 && op.list("transposed")[operand] != 0) {
    std::swap(view.rows, view.columns);
    std::swap(view.row_stride, view.column_stride);
  }
  return view;
}

}  // namespace headroom
