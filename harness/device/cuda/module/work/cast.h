// Casts between element types.
#pragma once

#include "harness/device/cuda/module/work/elementwise.h"

namespace headroom::cuda {

struct Same {
  HEADROOM_DEVICE float operator()(float x) const { return x; }
};

template <typename From, typename To>
class Cast {
 public:
  explicit Cast(Index count) : count_(count) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    const From* x = elements<From>(buffers.inputs[0]);
    map(queue, count_, Anywhere<Same>{}, x, elements<To>(buffers.outputs[0]));
  }

 private:
  Index count_;
};

template <typename Queue>
Work<Queue> make_cast(const Op& op, const Program& program) {
  const Value &from = program.value(op.inputs[0]), &to = program.value(op.outputs[0]);
  return host::for_type_of(from, [&]<typename From>(From) {
    return host::for_type_of(to, [&]<typename To>(To) -> Work<Queue> {
      return Cast<From, To>(element_count(to.shape));
    });
  });
}

template <typename Queue>
Works<Queue> cast_works() {
  return {{"cast", make_cast<Queue>}};
}

}  // namespace headroom::cuda
