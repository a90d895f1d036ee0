// The parts of a linear layer that are not products.
#pragma once

#include "harness/device/cuda/module/work/map.h"
#include "harness/device/cuda/module/work/matrix_places.h"
#include "harness/device/cuda/module/work/sums.h"
#include "harness/device/host/kernels/eight_bits.h"

namespace headroom::cuda {

// db of a linear layer: sums of dy[N,O] over N.
template <typename T>
class BiasGradient {
 public:
  BiasGradient(const Op& op, const Program& program)
      : rows_(program.value(op.inputs[1]).shape[0]), width_(program.value(op.inputs[1]).shape[1]) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const T* dy = elements<T>(buffers.inputs[1]);
    // In 8 bits the scales of x and of dy follow them.
    const float* scale = host::EightBits<T> ? floats(buffers.inputs[3]) : nullptr;
    float* db = floats(buffers.outputs[1]);
    const Index width = width_;
    sum_columns(
        queue, rows_, width_,
        [=] HEADROOM_DEVICE(Index row, Index column) {
          return SumsOf<T>{load(dy[row * width + column]), 0};
        },
        [=] HEADROOM_DEVICE(Index c, Sums sums) {
          db[c] = static_cast<float>(scale == nullptr ? sums.first : sums.first * *scale);
        });
  }

 private:
  Index rows_, width_;
};

template <typename Queue>
Work<Queue> bias_gradient_work(const Op& op, const Program& program) {
  if (program.value(op.inputs[1]).dtype == DType::f8e5m2)
    return BiasGradient<host::F8E5M2>(op, program);
  return make_typed<BiasGradient, Queue>(op, program);
}

// y[N,O] += b[O], where the product could not add the bias itself.
template <typename T>
class AddBias {
 public:
  explicit AddBias(const Value& y) : count_(element_count(y.shape)), width_(y.shape.at(1)) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const float* bias = floats(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    const Divisor width = width_;
    const auto add = [=] HEADROOM_DEVICE(Index i, float value) { return value + bias[i % width]; };
    map(queue, count_, add, static_cast<const T*>(y), y);
  }

 private:
  Index count_;
  Divisor width_;
};

template <typename Queue>
Work<Queue> add_bias_work(const Value& y) {
  return host::for_type_of(y, [&]<typename T>(T) -> Work<Queue> { return AddBias<T>(y); });
}

// Writes the addresses of the matrices of a product: those of its first operand, of its second one,
// and of its result. The operands are the two, and the result and the table.
class MatrixAddresses {
 public:
  MatrixAddresses(Index calls, Index batch, const MatrixPlaces& places)
      : count_(calls * batch), batch_(batch), places_(places) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    std::byte *const a = buffers.inputs[0], *const b = buffers.inputs[1];
    std::byte* const d = buffers.outputs[0];
    auto** const table = elements<std::byte*>(buffers.outputs[1]);
    const MatrixPlace of_a = places_[0], of_b = places_[1], of_d = places_[2];
    const Index count = count_;
    const Divisor batch = batch_;
    queue.for_each(count, [=] HEADROOM_DEVICE(Index i) {
      const Index call = i / batch, matrix = i % batch;
      const auto at = [=](std::byte* data, MatrixPlace place) {
        return data + call * place.from_call_to_call + matrix * place.from_matrix_to_matrix;
      };
      table[i] = at(a, of_a);
      table[count + i] = at(b, of_b);
      table[2 * count + i] = at(d, of_d);
    });
  }

 private:
  Index count_, batch_;
  MatrixPlaces places_;
};

template <typename Queue>
Work<Queue> matrix_addresses_work(Index calls, Index batch, const MatrixPlaces& places) {
  return MatrixAddresses(calls, batch, places);
}

struct alignas(16) SixteenBytes {
  std::byte bytes[16];
};

// y[columns, rows] is the transpose of x[rows, columns]: one-byte elements, both sides multiples of
// 16. Neighbouring threads read adjacent bytes, and each write is 16 bytes.
class TransposeBytes {
 public:
  TransposeBytes(Index rows, Index columns) : rows_(rows), columns_(columns) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const std::byte* x = buffers.inputs[0];
    auto* y = elements<SixteenBytes>(buffers.outputs[0]);
    const Index rows = rows_;
    const Divisor columns = columns_;
    queue.for_each(rows / 16 * columns, [=] HEADROOM_DEVICE(Index i) {
      const Index row = i / columns * 16, column = i % columns;
      SixteenBytes turned;
      for (Index r = 0; r < 16; ++r) turned.bytes[r] = x[(row + r) * columns + column];
      y[(column * rows + row) / 16] = turned;
    });
  }

 private:
  Index rows_, columns_;
};

// Transposes a packed column-major matrix.
template <typename Queue>
Work<Queue> transpose_bytes_work(Index rows, Index columns) {
  return TransposeBytes(columns, rows);
}

}  // namespace headroom::cuda
