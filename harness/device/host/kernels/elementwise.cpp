// Loops over whole buffers including padding: padding holds zeros, and all these functions map
// zeros to zeros. An output may alias an input, hence no __restrict but `simd` to vectorise. No
// load or product is conditional, because few processors can vectorise that.
#include "harness/device/host/kernels/element.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

template <typename T>
HEADROOM_VECTORISED void add(const T* a, const T* b, T* y, std::size_t begin, std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) store(y[i], load(a[i]) + load(b[i]));
}

template <typename T>
HEADROOM_VECTORISED void relu(const T* x, T* y, std::size_t begin, std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) store(y[i], load(x[i]) < 0 ? 0 : load(x[i]));  // or NaN
}

template <typename T>
HEADROOM_VECTORISED void relu_backward(const T* y, const T* dy, T* dx, std::size_t begin,
                                       std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) {
    const float arriving = load(dy[i]);
    store(dx[i], load(y[i]) > 0 ? arriving : 0);
  }
}

template <typename T>
HEADROOM_VECTORISED void leaky_relu(const T* x, T* y, float slope, std::size_t begin,
                                    std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) {
    const float value = load(x[i]);
    const float above = value > 0 ? value : 0, below = value > 0 ? 0 : value;
    store(y[i], above + slope * below);
  }
}

template <typename T>
HEADROOM_VECTORISED void leaky_relu_backward(const T* y, const T* dy, T* dx, float slope,
                                             std::size_t begin, std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) {
    const float factor = load(y[i]) > 0 ? 1 : slope;
    store(dx[i], factor * load(dy[i]));
  }
}

// Number of elements in the buffer's layout, including padding.
template <typename T>
std::size_t count_of(const Op& op, const Program& program) {
  return program.value(op.outputs[0]).bytes / sizeof(T);
}

// Calls loop(y, first input, second input, begin, end) for the output y and its inputs; the second
// is null for ops with one input.
template <typename T, typename Loop>
Kernel over_elements(const Op& op, const Program& program, Loop loop) {
  return [loop, count = count_of<T>(op, program)](const OpBuffers& buffers) {
    const T* first = elements<T>(buffers.inputs[0]);
    const T* second = buffers.inputs.size() > 1 ? elements<T>(buffers.inputs[1]) : nullptr;
    T* y = elements<T>(buffers.outputs[0]);
    in_parallel(count,
                [&](std::size_t begin, std::size_t end) { loop(y, first, second, begin, end); });
  };
}

}  // namespace

Kernel make_add(const Op& op, const Program& program) {
  return for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) {
    return over_elements<T>(op, program,
                            [](T* y, const T* a, const T* b, std::size_t begin, std::size_t end) {
                              add<T>(a, b, y, begin, end);
                            });
  });
}

Kernel make_relu(const Op& op, const Program& program) {
  return for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) {
    return over_elements<T>(op, program,
                            [](T* y, const T* x, const T*, std::size_t begin, std::size_t end) {
                              relu<T>(x, y, begin, end);
                            });
  });
}

Kernel make_relu_backward(const Op& op, const Program& program) {
  return for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) {
    return over_elements<T>(op, program,
                            [](T* dx, const T* y, const T* dy, std::size_t begin, std::size_t end) {
                              relu_backward<T>(y, dy, dx, begin, end);
                            });
  });
}

Kernel make_leaky_relu(const Op& op, const Program& program) {
  const auto slope = static_cast<float>(op.number("slope"));
  return for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) {
    return over_elements<T>(
        op, program, [slope](T* y, const T* x, const T*, std::size_t begin, std::size_t end) {
          leaky_relu<T>(x, y, slope, begin, end);
        });
  });
}

Kernel make_leaky_relu_backward(const Op& op, const Program& program) {
  const auto slope = static_cast<float>(op.number("slope"));
  return for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) {
    return over_elements<T>(
        op, program, [slope](T* dx, const T* y, const T* dy, std::size_t begin, std::size_t end) {
          leaky_relu_backward<T>(y, dy, dx, slope, begin, end);
        });
  });
}

}  // namespace headroom::host
