// A row-major [rows, columns] tensor is, read column-major, its own transpose with `columns` rows.
// So a row-major product y = p q is computed as yᵀ = qᵀ pᵀ with the operands swapped.
#include "harness/device/cuda/module/kernels/gemm.h"

#include "harness/base/error.h"
#include "harness/program/ops/matmul_view.h"

namespace headroom::cuda {
namespace {

GemmMatrix whole(const Shape& shape) { return {shape.at(1), shape.at(0), shape.at(1), 0}; }

// The tensor of one sample and head as stored, whether or not the op reads it transposed.
struct Stored {
  GemmMatrix matrix;
  bool transposed;
  std::int64_t sample_stride, head_stride;
};

Stored stored(const Op& op, std::size_t operand, const Shape& shape) {
  MatmulView view = matmul_view(op, operand, shape);
  const bool transposed = operand < 2 && op.list("transposed")[operand] != 0;
  if (transposed) {
    std::swap(view.rows, view.columns);
    std::swap(view.row_stride, view.column_stride);
  }
  return {{view.columns, view.rows, view.row_stride, 0},
          transposed,
          view.sample_stride,
          view.head_stride};
}

// The library steps through a batch with one stride, but samples and heads have two. When one
// stride fits all three operands the batch is one call; otherwise it is one call per sample or per
// head, whichever is fewer.
void set_batch(Gemm& gemm, const Op& op, const std::array<Stored, 3>& of) {
  const std::int64_t samples = op.list("batch")[0], heads = op.list("batch")[1];
  bool even = true;
  for (const Stored& operand : of) even &= operand.sample_stride == heads * operand.head_stride;
  const bool over_heads = even || samples <= heads;
  gemm.batch = even ? samples * heads : over_heads ? heads : samples;
  gemm.calls = even ? 1 : over_heads ? samples : heads;
  const std::array<GemmMatrix*, 3> matrices = {&gemm.of_a, &gemm.of_b, &gemm.of_d};
  for (std::size_t i = 0; i < 3; ++i) {
    matrices[i]->stride = over_heads ? of[i].head_stride : of[i].sample_stride;
    gemm.steps[i] = even ? 0 : over_heads ? of[i].sample_stride : of[i].head_stride;
  }
}

Gemm batched(const Op& op, const Program& program) {
  const Stored p = stored(op, 0, program.value(op.inputs[0]).shape);
  const Stored q = stored(op, 1, program.value(op.inputs[1]).shape);
  const Stored y = stored(op, 2, program.value(op.outputs[0]).shape);
  Gemm gemm = {.a = 1,
               .b = 0,
               .transpose_a = q.transposed,
               .transpose_b = p.transposed,
               .of_a = q.matrix,
               .of_b = p.matrix,
               .of_d = y.matrix};
  set_batch(gemm, op, {q, p, y});
  return gemm;
}

Gemm as_it_lies(const Op& op, const Program& program) {
  if (op.kind == "batched_matmul") return batched(op, program);
  const GemmMatrix first = whole(program.value(op.inputs[0]).shape);
  const GemmMatrix second = whole(program.value(op.inputs[1]).shape);
  const GemmMatrix result = whole(program.value(op.outputs[0]).shape);
  if (op.kind == "linear")  // yᵀ[O,N] = w[O,I] xᵀ[I,N]
    return {.a = 1,
            .b = 0,
            .transpose_a = true,
            .transpose_b = false,
            .of_a = second,
            .of_b = first,
            .of_d = result,
            .has_bias = true};
  if (op.kind == "linear_backward_data")  // dxᵀ[I,N] = wᵀ[I,O] dyᵀ[O,N]
    return {.a = 1,
            .b = 0,
            .transpose_a = false,
            .transpose_b = false,
            .of_a = second,
            .of_b = first,
            .of_d = result};
  if (op.kind == "linear_backward_weights")  // dwᵀ[I,O] = xᵀ[I,N] dy[N,O]
    return {.a = 0,
            .b = 1,
            .transpose_a = false,
            .transpose_b = true,
            .of_a = first,
            .of_b = second,
            .of_d = result};
  throw Error(op.kind + " is not a matrix product");
}

// 8-bit products are never batched, because their matrices are packed.
void turn(GemmMatrix& matrix, bool& transpose) {
  matrix = {matrix.columns, matrix.rows, matrix.columns, 0};
  transpose = !transpose;
}

}  // namespace

Gemm gemm_of(const Op& op, const Program& program) {
  Gemm gemm = as_it_lies(op, program);
  if (!is_f8(program.value(op.inputs[0]).dtype)) return gemm;
  gemm.turned = {!gemm.transpose_a, gemm.transpose_b};
  if (gemm.turned[0]) turn(gemm.of_a, gemm.transpose_a);
  if (gemm.turned[1]) turn(gemm.of_b, gemm.transpose_b);
  return gemm;
}

}  // namespace headroom::cuda
