// Dropout with the host's generator, Philox4x32-10 (Salmon et al. 2011). Element e takes word (e
// mod 64) / 16 of counter e / 64 · 16 + e mod 16, so both devices drop the same elements.
#pragma once

#include <cmath>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

struct PhiloxWords {
  std::uint32_t word[4];
};

HEADROOM_DEVICE inline PhiloxWords philox(std::uint64_t counter, std::uint32_t stream,
                                          std::uint32_t key0, std::uint32_t key1) {
  std::uint32_t a = static_cast<std::uint32_t>(counter);
  std::uint32_t b = static_cast<std::uint32_t>(counter >> 32U);
  std::uint32_t c = stream, d = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53U} * a;
    const std::uint64_t q = std::uint64_t{0xCD9E8D57U} * c;
    a = static_cast<std::uint32_t>(q >> 32U) ^ b ^ key0;
    b = static_cast<std::uint32_t>(q);
    c = static_cast<std::uint32_t>(p >> 32U) ^ d ^ key1;
    d = static_cast<std::uint32_t>(p);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{a, b, c, d}};
}

// One Philox counter covers four elements, 16 apart.
template <typename T>
struct Drop {
  const T* x;
  const std::int32_t* key;
  T* y;
  std::uint8_t* kept;
  std::uint32_t stream, dropped_below;
  float scale;
  Index count;

  HEADROOM_DEVICE void operator()(Index counter) const {
    const PhiloxWords words =
        philox(static_cast<std::uint64_t>(counter), stream, static_cast<std::uint32_t>(key[0]),
               static_cast<std::uint32_t>(key[1]));
    const Index first = counter / 16 * 64 + counter % 16;
    for (Index i = 0; i < 4; ++i) {
      const Index e = first + 16 * i;
      if (e >= count) return;
      const bool keep = words.word[i] >= dropped_below;
      store(y[e], keep ? scale * load(x[e]) : 0.0F);
      kept[e] = keep ? 1 : 0;
    }
  }
};

template <typename T>
struct DropBackward {
  const T* dy;
  const std::uint8_t* kept;
  T* dx;
  float scale;

  HEADROOM_DEVICE void operator()(Index e) const {
    store(dx[e], kept[e] != 0 ? scale * load(dy[e]) : 0.0F);
  }
};

template <typename T>
class Dropout {
 public:
  Dropout(const Op& op, const Program& program)
      : stream_(static_cast<std::uint32_t>(op.integer("stream"))),
        dropped_below_(static_cast<std::uint32_t>(std::llround(op.number("rate") * 0x1p32))),
        scale_(static_cast<float>(1 / (1 - op.number("rate")))),
        count_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    queue.for_each(
        (count_ + 63) / 64 * 16,
        Drop<T>{elements<T>(buffers.inputs[0]), whole_numbers(buffers.inputs[1]),
                elements<T>(buffers.outputs[0]), elements<std::uint8_t>(buffers.outputs[1]),
                stream_, dropped_below_, scale_, count_});
  }

 private:
  std::uint32_t stream_, dropped_below_;
  float scale_;
  Index count_;
};

template <typename T>
class DropoutBackward {
 public:
  DropoutBackward(const Op& op, const Program& program)
      : scale_(static_cast<float>(1 / (1 - op.number("rate")))),
        count_(count_of(program, op.outputs[0])) {}

  template <typename Queue>
  void operator()(Queue& queue, const OpBuffers& buffers) const {
    queue.for_each(count_, DropBackward<T>{elements<T>(buffers.inputs[0]),
                                           elements<std::uint8_t>(buffers.inputs[1]),
                                           elements<T>(buffers.outputs[0]), scale_});
  }

 private:
  float scale_;
  Index count_;
};

template <typename Queue>
Works<Queue> dropout_works() {
  return {
      {"dropout", make_typed<Dropout, Queue>},
      {"dropout_backward", make_typed<DropoutBackward, Queue>},
  };
}

}  // namespace headroom::cuda
