// Kernels of our own, written once for any queue: what an op queues, step by step. On the GPU the
// steps are CUB's algorithms (../cub_queue.h); tests run the same code in plain loops.
//
// A Queue runs what it is given in order and offers
//   for_each(count, f)                                       f(i) for i in [0, count), all at once
//   for_each_by_table(count, f)      the same for an f that holds a table indexed at run time
//   reduce(count, value, combine, initial, result)           *result = all value(i) combined
//   reduce_rows(rows, width, value, combine, initial, results)
//                                    results[r] = value(r, c) combined, c in [0, width), in any
//                                    order; `initial` combined with a value is that value; results
//                                    may also be a function that takes r and what was combined
//   reduce_columns(groups, rows, columns, value, combine, initial, results)
//                                    results[c groups + g] = value.of_column(c)(r) combined over
//                                    the rows r of group g, which starts at g rows / groups
//   for_each_by_column(rows, columns, f)   f.of_column(c).write(r, f.of_column(c).read(r)) for each
//                                    row r and column c; of other rows some are read before
//   sort(keys, sorted, count)        ascending
//   sort_pairs(keys, sorted_keys, values, sorted_values, count)   equal keys keep their order
//   scratch<T>(count)                room in the op's workspace, for this op only
// The queue skips the loops of a conditional op on the device, but not its other steps. Those must
// therefore write to scratch, never to operands.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <type_traits>

#include "harness/device/cuda/module/work/divisor.h"
#include "harness/device/device.h"
#include "harness/device/host/kernels/element.h"
#include "harness/program/program.h"

namespace headroom::cuda {

using host::elements;
using host::load;
using host::store;

template <typename Queue>
using Work = std::function<void(Queue&, const OpBuffers&)>;

// Functions that make the work of an op, by its kind.
template <typename Queue>
using Works = std::map<std::string_view, Work<Queue> (*)(const Op&, const Program&)>;

// A rule is built from an op without its condition and called with a queue and the op's buffers.
template <typename Rule, typename Queue>
Work<Queue> make(const Op& op, const Program& program) {
  return Rule(op, program);
}

// Rule<T> for the element type T of the first operand.
template <template <typename> typename Rule, typename Queue>
Work<Queue> make_typed(const Op& op, const Program& program) {
  return host::for_type_of(program.value(op.inputs[0]),
                           [&]<typename T>(T) -> Work<Queue> { return Rule<T>(op, program); });
}

// Gives a result to the memory or to the function that takes it.
template <typename T, typename Results>
HEADROOM_DEVICE void give(const Results& results, Index i, const T& result) {
  if constexpr (std::is_pointer_v<Results>)
    results[i] = result;
  else
    results(i, result);
}

inline float* floats(std::byte* data) { return elements<float>(data); }
inline std::int32_t* whole_numbers(std::byte* data) { return elements<std::int32_t>(data); }

inline Index count_of(const Program& program, ValueId id) {
  return element_count(program.value(id).shape);
}

}  // namespace headroom::cuda
