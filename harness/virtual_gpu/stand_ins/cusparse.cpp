// Stands in for cuSPARSE's descriptions of sparse matrices and for its product of two of them,
// whose number of non-zeros frameworks read in order to allocate the result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

namespace {

using Long = std::int64_t;
using Longs = std::vector<Long>;

// Compressed rows are described by the offset of each row and the column of each non-zero. The
// other formats have only sizes here.
struct Matrix {
  Long rows = 0, columns = 0, nonzeros = 0;
  const void* row_offsets = nullptr;
  const void* column_indices = nullptr;
  int offset_type = 0, index_type = 0;
};

std::mutex matrices_mutex;
std::map<const void*, Matrix> matrices;

int create(void** handle, const Matrix& matrix) {
  *handle = new_object();
  const std::lock_guard lock(matrices_mutex);
  matrices[*handle] = matrix;
  return kSuccess;
}

template <typename Index>
std::optional<Longs> known_indices(const void* address, Long count) {
  std::vector<Index> indices(static_cast<std::size_t>(count));
  if (!copy_known(indices.data(), address, indices.size() * sizeof(Index))) return std::nullopt;
  return Longs(indices.begin(), indices.end());
}

// `type` is a cusparseIndexType_t.
std::optional<Longs> known_indices(const void* address, Long count, int type) {
  constexpr int k32Bits = 2, k64Bits = 3;
  if (address == nullptr || count < 0 || static_cast<std::size_t>(count) > kKeptBytes)
    return std::nullopt;
  if (type == k32Bits) return known_indices<std::int32_t>(address, count);
  if (type == k64Bits) return known_indices<std::int64_t>(address, count);
  return std::nullopt;
}

// The columns of the non-zeros of each row.
std::optional<std::vector<Longs>> known_rows(const Matrix& matrix) {
  const auto offsets = known_indices(matrix.row_offsets, matrix.rows + 1, matrix.offset_type);
  const auto columns = known_indices(matrix.column_indices, matrix.nonzeros, matrix.index_type);
  if (!offsets || !columns) return std::nullopt;
  std::vector<Longs> rows;
  for (std::size_t row = 0; row + 1 < offsets->size(); ++row) {
    // Offsets and indices begin at 0 or at 1.
    const Long begin = (*offsets)[row] - (*offsets)[0], end = (*offsets)[row + 1] - (*offsets)[0];
    if (begin < 0 || end < begin || end > matrix.nonzeros) return std::nullopt;
    rows.emplace_back(columns->begin() + begin, columns->begin() + end);
    for (Long& column : rows.back()) column -= (*offsets)[0];
  }
  return rows;
}

std::optional<Long> known_nonzeros(const Matrix& a, const Matrix& b) {
  if (a.nonzeros == 0 || b.nonzeros == 0) return 0;
  const auto left = known_rows(a), right = known_rows(b);
  if (!left || !right) return std::nullopt;
  Long nonzeros = 0;
  for (const Longs& row : *left) {
    std::set<Long> columns;
    for (const Long middle : row) {
      if (middle < 0 || middle >= b.rows) return std::nullopt;
      const Longs& of_middle = (*right)[static_cast<std::size_t>(middle)];
      columns.insert(of_middle.begin(), of_middle.end());
    }
    nonzeros += static_cast<Long>(columns.size());
  }
  return nonzeros;
}

// The mean number of non-zeros if those of both matrices lie at random.
Long expected_nonzeros(const Matrix& a, const Matrix& b) {
  const auto share = [](const Matrix& matrix) {
    return static_cast<double>(matrix.nonzeros) / static_cast<double>(matrix.rows) /
           static_cast<double>(matrix.columns);
  };
  // An element of the product is zero if the products of all pairs are: (1 - share)^pairs.
  const double both = std::min(share(a) * share(b), 1.0);
  const double nonzero = -std::expm1(static_cast<double>(a.columns) * std::log1p(-both));
  const double elements = static_cast<double>(a.rows) * static_cast<double>(b.columns);
  return std::llround(elements * nonzero);
}

}  // namespace

HEADROOM_EXPORT int cusparseCreateCsr(void** handle, Long rows, Long columns, Long nonzeros,
                                      const void* row_offsets, const void* column_indices,
                                      const void*, int offset_type, int index_type) {
  return create(handle,
                {rows, columns, nonzeros, row_offsets, column_indices, offset_type, index_type});
}
HEADROOM_EXPORT int cusparseCreateConstCsr(void** handle, Long rows, Long columns, Long nonzeros,
                                           const void* row_offsets, const void* column_indices,
                                           const void* values, int offset_type, int index_type) {
  return cusparseCreateCsr(handle, rows, columns, nonzeros, row_offsets, column_indices, values,
                           offset_type, index_type);
}
HEADROOM_EXPORT int cusparseCreateCoo(void** handle, Long rows, Long columns, Long nonzeros) {
  return create(handle, {.rows = rows, .columns = columns, .nonzeros = nonzeros});
}
HEADROOM_EXPORT int cusparseCreateConstCoo(void** handle, Long rows, Long columns, Long nonzeros) {
  return cusparseCreateCoo(handle, rows, columns, nonzeros);
}
HEADROOM_EXPORT int cusparseCreateCsc(void** handle, Long rows, Long columns, Long nonzeros) {
  return cusparseCreateCoo(handle, rows, columns, nonzeros);
}
HEADROOM_EXPORT int cusparseCreateConstCsc(void** handle, Long rows, Long columns, Long nonzeros) {
  return cusparseCreateCoo(handle, rows, columns, nonzeros);
}
HEADROOM_EXPORT int cusparseCsrSetPointers(void* handle, const void* row_offsets,
                                           const void* column_indices, const void*) {
  const std::lock_guard lock(matrices_mutex);
  if (const auto found = matrices.find(handle); found != matrices.end()) {
    found->second.row_offsets = row_offsets;
    found->second.column_indices = column_indices;
  }
  return kSuccess;
}
HEADROOM_EXPORT int cusparseDestroySpMat(void* handle) {
  {
    const std::lock_guard lock(matrices_mutex);
    matrices.erase(handle);
  }
  delete_object(handle);
  return kSuccess;
}
HEADROOM_EXPORT int cusparseSpMatGetSize(const void* handle, Long* rows, Long* columns,
                                         Long* nonzeros) {
  const std::lock_guard lock(matrices_mutex);
  const auto found = matrices.find(handle);
  if (found == matrices.end()) stop_at_unsupported("libcusparse", "cusparseSpMatGetSize");
  *rows = found->second.rows;
  *columns = found->second.columns;
  *nonzeros = found->second.nonzeros;
  return kSuccess;
}
// Sets the number of non-zeros of `c`. The matrices must not be transposed, says the documentation.
HEADROOM_EXPORT int cusparseSpGEMM_compute(void*, int, int, const void*, const void* a,
                                           const void* b, const void*, const void* c, int, int,
                                           void*, std::size_t* bytes, const void*) {
  note_size_not_known("cusparseSpGEMM_compute");
  *bytes = 0;
  const std::lock_guard lock(matrices_mutex);
  const Matrix &left = matrices[a], &right = matrices[b];
  const std::optional<Long> known = known_nonzeros(left, right);
  if (!known) note_size_estimated("cusparseSpGEMM_compute (non-zeros, as if they lay at random)");
  matrices[c].nonzeros = known ? *known : expected_nonzeros(left, right);
  return kSuccess;
}
// The number of non-zeros is known, their places and values are not.
HEADROOM_EXPORT int cusparseSpGEMM_copy(void*, int, int, const void*, const void*, const void*,
                                        const void*, const void* c) {
  const std::lock_guard lock(matrices_mutex);
  forget_result(matrices[c].row_offsets);
  forget_result(matrices[c].column_indices);
  return kSuccess;
}
