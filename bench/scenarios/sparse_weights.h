// Pruned weights in compressed storage, where zeros take no room of their own: for scenarios of
// deployment. A zero comes back as +0, whatever its sign was, every other number bit for bit.
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

// Can a weight of this shape lie so at all?
bool fits(SparseForm form, const Shape& shape);
// Row-major weights of a shape that fits. Absent where a group of four has three numbers.
std::optional<std::vector<std::byte>> pack(SparseForm form, std::span<const float> weights,
                                           const Shape& shape);
// What pack() was given. Throws Error where `packed` is no such storage.
std::vector<float> unpack(SparseForm form, std::span<const std::byte> packed, const Shape& shape);

// What a weight of this shape takes with so many numbers that are not zero: size of pack().
Bytes packed_bytes(SparseForm form, const Shape& shape, std::size_t numbers);
// The share of zeros above which weights of these shapes take less than dense, counted from
// packed_bytes(). Absent where the number of zeros changes nothing.
std::optional<double> break_even_sparsity(SparseForm form, std::span<const Shape> shapes);

}  // namespace headroom
