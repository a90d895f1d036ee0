// Elementwise ops; an output may share memory with an input.
#pragma once

#include <cmath>
#include <type_traits>

#include "harness/device/cuda/module/work/map.h"

namespace headroom::cuda {

// Applies f, which depends on an element's value but not on its position.
template <typename F>
struct Anywhere {
  F f;
  template <typename... Floats>
  HEADROOM_DEVICE float operator()(Index, Floats... x) const {
    return f(x...);
  }
};

// F is built from the op and maps one, two or three floats to one float.
template <typename F, typename T>
class Elementwise {
 public:
  Elementwise(const Op& op, const Program& program)
      : f_(op), count_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    T* y = elements<T>(buffers.outputs[0]);
    const auto operand = [&](std::size_t i) -> const T* { return elements<T>(buffers.inputs[i]); };
    if constexpr (std::is_invocable_v<F, float>)
      map(queue, count_, Anywhere<F>{f_}, operand(0), y);
    else if constexpr (std::is_invocable_v<F, float, float>)
      map(queue, count_, Anywhere<F>{f_}, operand(0), operand(1), y);
    else
      map(queue, count_, Anywhere<F>{f_}, operand(0), operand(1), operand(2), y);
  }

 private:
  F f_;
  Index count_;
};

struct Plain {  // no attributes
  explicit Plain(const Op&) {}
};
struct Sloped {
  float slope;
  explicit Sloped(const Op& op) : slope(static_cast<float>(op.number("slope"))) {}
};

struct Plus : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Times : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float a, float b) const { return a * b; }
};
struct Relu : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }  // NaN stays NaN
};
struct ReluBackward : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};
// The gradient of a relu whose result two ops read is the sum of their gradients.
struct ReluBackwardOfSum : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float y, float dy, float more) const {
    return y > 0 ? dy + more : 0;
  }
};
struct LeakyRelu : Sloped {
  using Sloped::Sloped;
  HEADROOM_DEVICE float operator()(float x) const { return x > 0 ? x : slope * x; }
};
struct LeakyReluBackward : Sloped {
  using Sloped::Sloped;
  HEADROOM_DEVICE float operator()(float y, float dy) const { return y > 0 ? dy : slope * dy; }
};
struct Tanh : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float x) const { return std::tanh(x); }
};
struct TanhBackward : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

HEADROOM_DEVICE inline float normal_distribution(float x) {
  return 0.5F * std::erfc(-x * 0.70710678118654752F);
}
struct Gelu : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float x) const { return x * normal_distribution(x); }
};
struct GeluBackward : Plain {
  using Plain::Plain;
  HEADROOM_DEVICE float operator()(float x, float dy) const {
    const float density = 0.39894228040143268F * std::exp(-0.5F * x * x);
    return dy * (normal_distribution(x) + x * density);
  }
};

template <typename F, typename Queue>
Work<Queue> make_elementwise(const Op& op, const Program& program) {
  return host::for_type_of(program.value(op.outputs[0]), [&]<typename T>(T) -> Work<Queue> {
    return Elementwise<F, T>(op, program);
  });
}

template <typename Queue>
Work<Queue> make_relu_backward(const Op& op, const Program& program) {
  if (op.inputs.size() == 3) return make_elementwise<ReluBackwardOfSum, Queue>(op, program);
  return make_elementwise<ReluBackward, Queue>(op, program);
}

template <typename Queue>
Works<Queue> elementwise_works() {
  return {
      {"add", make_elementwise<Plus, Queue>},
      {"gelu", make_elementwise<Gelu, Queue>},
      {"gelu_backward", make_elementwise<GeluBackward, Queue>},
      {"leaky_relu", make_elementwise<LeakyRelu, Queue>},
      {"leaky_relu_backward", make_elementwise<LeakyReluBackward, Queue>},
      {"masked", make<Elementwise<Times, float>, Queue>},
      {"relu", make_elementwise<Relu, Queue>},
      {"relu_backward", make_relu_backward<Queue>},
      {"tanh", make_elementwise<Tanh, Queue>},
      {"tanh_backward", make_elementwise<TanhBackward, Queue>},
  };
}

}  // namespace headroom::cuda
