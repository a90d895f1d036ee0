// Kinds of op that concern memory, not numbers.
#pragma once

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

class Hold {
 public:
  Hold(const Op&, const Program&) {}
  template <typename Queue>
  void operator()(Queue&, const OpBuffers&) const {}
};

class Touch {
 public:
  Touch(const Op& op, const Program& program) : bytes_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    constexpr Index kPage = 4096;
    auto* y = elements<std::uint8_t>(buffers.outputs[0]);
    queue.for_each((bytes_ + kPage - 1) / kPage,
                   [=] HEADROOM_DEVICE(Index page) { y[page * kPage] = 1; });
  }

 private:
  Index bytes_;
};

template <typename Queue>
Works<Queue> lifetime_works() {
  return {
      {"hold", make<Hold, Queue>},
      {"touch", make<Touch, Queue>},
  };
}

}  // namespace headroom::cuda
