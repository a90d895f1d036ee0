// Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"): the random
// word of an element depends only on key, stream and the element's index, whatever the order of
// computation. Element e takes word (e mod 64) / 16 of counter e / 64 · 16 + e mod 16, so that 16
// counters in parallel produce the words of 64 consecutive elements.
#include <cmath>

#include "harness/device/host/kernels/element.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kBlock = 4 * kLanes;  // elements

struct Draw {
  std::uint32_t key0, key1, stream;
  std::uint32_t dropped_below;  // out of the 2^32 words
  float scale;
};

[[gnu::always_inline]] inline void philox(std::uint64_t first_counter, const Draw& draw,
                                          std::uint32_t (&words)[kBlock]) {
  std::uint32_t* a = words;
  std::uint32_t* b = words + kLanes;
  std::uint32_t* c = words + 2 * kLanes;
  std::uint32_t* d = words + 3 * kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    a[i] = static_cast<std::uint32_t>(first_counter + i);
    b[i] = static_cast<std::uint32_t>((first_counter + i) >> 32U);
    c[i] = draw.stream;
    d[i] = 0;
  }
  std::uint32_t key0 = draw.key0;
  std::uint32_t key1 = draw.key1;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t p = std::uint64_t{0xD2511F53U} * a[i];
      const std::uint64_t q = std::uint64_t{0xCD9E8D57U} * c[i];
      const std::uint32_t next_a = static_cast<std::uint32_t>(q >> 32U) ^ b[i] ^ key0;
      const std::uint32_t next_c = static_cast<std::uint32_t>(p >> 32U) ^ d[i] ^ key1;
      b[i] = static_cast<std::uint32_t>(q);
      d[i] = static_cast<std::uint32_t>(p);
      a[i] = next_a;
      c[i] = next_c;
    }
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

// `begin` is a multiple of kBlock; y may alias x.
template <typename T>
HEADROOM_VECTORISED void drop(const T* x, T* y, std::uint8_t* __restrict kept, Draw draw,
                              std::size_t begin, std::size_t end) {
  alignas(64) std::uint32_t words[kBlock];
  for (std::size_t block = begin; block < end; block += kBlock) {
    philox(block / 4, draw, words);
    const std::size_t count = end - block < kBlock ? end - block : kBlock;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
      const bool keep = words[i] >= draw.dropped_below;
      store(y[block + i], keep ? draw.scale * load(x[block + i]) : 0.0F);
      kept[block + i] = keep ? 1 : 0;
    }
  }
}

template <typename T>
HEADROOM_VECTORISED void drop_backward(const T* dy, const std::uint8_t* __restrict kept, T* dx,
                                       float scale, std::size_t begin, std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) store(dx[i], kept[i] != 0 ? scale * load(dy[i]) : 0.0F);
}

float scale_of(const Op& op) { return static_cast<float>(1 / (1 - op.number("rate"))); }

std::size_t count_of(const Op& op, const Program& program) {
  return static_cast<std::size_t>(element_count(program.value(op.outputs[0]).shape));
}

}  // namespace

Kernel make_dropout(const Op& op, const Program& program) {
  const Draw draw = {
      .key0 = 0,
      .key1 = 0,
      .stream = static_cast<std::uint32_t>(op.integer("stream")),
      .dropped_below = static_cast<std::uint32_t>(std::lround(op.number("rate") * 0x1p32)),
      .scale = scale_of(op)};
  return for_type_of(program.value(op.inputs[0]), [&]<typename T>(T) -> Kernel {
    return [draw, count = count_of(op, program)](const OpBuffers& buffers) {
      Draw now = draw;
      now.key0 = static_cast<std::uint32_t>(whole_numbers(buffers.inputs[1])[0]);
      now.key1 = static_cast<std::uint32_t>(whole_numbers(buffers.inputs[1])[1]);
      static_assert(kPartFloats % kBlock == 0);
      in_parallel(count, [&](std::size_t begin, std::size_t end) {
        drop<T>(elements<T>(buffers.inputs[0]), elements<T>(buffers.outputs[0]),
                reinterpret_cast<std::uint8_t*>(buffers.outputs[1]), now, begin, end);
      });
    };
  });
}

Kernel make_dropout_backward(const Op& op, const Program& program) {
  return for_type_of(program.value(op.inputs[0]), [&]<typename T>(T) -> Kernel {
    return [scale = scale_of(op), count = count_of(op, program)](const OpBuffers& buffers) {
      in_parallel(count, [&](std::size_t begin, std::size_t end) {
        drop_backward<T>(elements<T>(buffers.inputs[0]),
                         reinterpret_cast<const std::uint8_t*>(buffers.inputs[1]),
                         elements<T>(buffers.outputs[0]), scale, begin, end);
      });
    };
  });
}

}  // namespace headroom::host
