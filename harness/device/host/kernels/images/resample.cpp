// Nearest-neighbour upsampling and sums of neighbours, with any channel blocking of the operands.
#include <algorithm>

#include "harness/device/host/kernels/element.h"
#include "harness/device/host/kernels/images/images.h"
#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {
namespace {

struct Resampling {
  ImageLayout x, y;
  std::int64_t factor;
  float scale;
};

// The start of channel c of image n.
std::int64_t plane_of(const ImageLayout& image, std::int64_t n, std::int64_t c) {
  return n * image.image + c / image.block * image.blocks + c % image.block;
}

// y = pixel(start of the channel in x, row, column); padding channels are set to 0.
template <typename T, typename Pixel>
void each_pixel(const Resampling& r, T* y, Pixel pixel) {
  const std::int64_t blocks = r.y.padded_channels / r.y.block;
#pragma omp parallel for
  for (std::int64_t i = 0; i < r.y.images * blocks; ++i) {
    const std::int64_t n = i / blocks, first = i % blocks * r.y.block;
    const std::int64_t channels = std::min(r.y.block, r.y.channels - first);
    std::int64_t planes[kLargestBlock];
    for (std::int64_t c = 0; c < channels; ++c) planes[c] = plane_of(r.x, n, first + c);
    T* block = y + plane_of(r.y, n, first);
    for (std::int64_t h = 0; h < r.y.height; ++h)
      for (std::int64_t w = 0; w < r.y.width; ++w) {
        T* target = block + h * r.y.row + w * r.y.column;
        for (std::int64_t c = 0; c < channels; ++c) store(target[c], pixel(planes[c], h, w));
        std::fill(target + channels, target + r.y.block, T{});
      }
  }
}

template <typename T>
Kernel upsample(const Resampling& r) {
  return [r](const OpBuffers& buffers) {
    const T* x = elements<T>(buffers.inputs[0]);
    each_pixel(r, elements<T>(buffers.outputs[0]),
               [&](std::int64_t plane, std::int64_t h, std::int64_t w) {
                 return r.scale *
                        load(x[plane + h / r.factor * r.x.row + w / r.factor * r.x.column]);
               });
  };
}

template <typename T>
Kernel sum_pool(const Resampling& r) {
  return [r](const OpBuffers& buffers) {
    const T* x = elements<T>(buffers.inputs[0]);
    each_pixel(r, elements<T>(buffers.outputs[0]),
               [&](std::int64_t plane, std::int64_t h, std::int64_t w) {
                 float sum = 0;
                 for (std::int64_t i = h * r.factor; i < (h + 1) * r.factor; ++i)
                   for (std::int64_t j = w * r.factor; j < (w + 1) * r.factor; ++j)
                     sum += load(x[plane + i * r.x.row + j * r.x.column]);
                 return r.scale * sum;
               });
  };
}

Resampling resampling(const Op& op, const Program& program) {
  return {.x = image_layout(op, program.value(op.inputs[0])),
          .y = image_layout(op, program.value(op.outputs[0])),
          .factor = op.integer("factor"),
          .scale = static_cast<float>(op.number("scale"))};
}

}  // namespace

Kernel make_upsample(const Op& op, const Program& program) {
  return for_type_of(program.value(op.inputs[0]),
                     [&]<typename T>(T) { return upsample<T>(resampling(op, program)); });
}

Kernel make_sum_pool(const Op& op, const Program& program) {
  return for_type_of(program.value(op.inputs[0]),
                     [&]<typename T>(T) { return sum_pool<T>(resampling(op, program)); });
}

}  // namespace headroom::host
