// Pruned weights in compressed storage, which stores no zeros, for deployment scenarios. Unpacking
// returns every zero as +0, whatever its sign was, and every other number bit for bit.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/base/units.h"
#include "harness/program/value.h"

namespace headroom {

//   csr          compressed sparse rows, as cuSPARSE and torch.sparse_csr keep them with 32-bit
//                indices: numbers, their columns, and where each row begins. A row is what belongs
//                to an index of the first dimension
//   bitmap       numbers, and a bit for each place that says whether there is one
//   two_of_four  two numbers of each four neighbours along the second dimension and where they
//                were, 2 bits each, as sparse tensor cores take them
enum class SparseForm { csr, bitmap, two_of_four };
std::optional<SparseForm> sparse_form_of(std::string_view name);

// Whether a weight of this shape can be stored in this form.
bool fits(SparseForm form, const Shape& shape);
// Packs row-major weights of a shape that fits. Absent when a group of four has more than two
// non-zero numbers.
std::optional<std::vector<std::byte>> pack(SparseForm form, std::span<const float> weights,
                                           const Shape& shape);
// Restores the weights given to pack(). Throws Error when `packed` is not valid storage of this
// form.
std::vector<float> unpack(SparseForm form, std::span<const std::byte> packed, const Shape& shape);

// The size of pack()'s result for a weight of this shape with `numbers` non-zero numbers.
Bytes packed_bytes(SparseForm form, const Shape& shape, std::size_t numbers);
// The share of zeros above which weights of these shapes take less memory than dense ones, derived
// from packed_bytes(). Absent when the size does not depend on the number of zeros.
std::optional<double> break_even_sparsity(SparseForm form, std::span<const Shape> shapes);

}  // namespace headroom
