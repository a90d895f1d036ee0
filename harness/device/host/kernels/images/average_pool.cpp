#include <algorithm>

#include "harness/device/host/kernels/element.h"
#include "harness/device/host/kernels/images/images.h"
#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {
namespace {

// Sums the pixels of each channel in one block of one image; `sums` holds image.block floats.
template <typename T>
void sum_block(const ImageLayout& image, const T* block, float* sums) {
  std::fill(sums, sums + image.block, 0.0F);
  for (std::int64_t h = 0; h < image.height; ++h)
    for (std::int64_t w = 0; w < image.width; ++w) {
      const T* pixel = block + h * image.row + w * image.column;
      for (std::int64_t c = 0; c < image.block; ++c) sums[c] += load(pixel[c]);
    }
}

template <typename T>
void spread_block(const ImageLayout& image, const T* values, T* block) {
  for (std::int64_t h = 0; h < image.height; ++h)
    for (std::int64_t w = 0; w < image.width; ++w) {
      T* pixel = block + h * image.row + w * image.column;
      std::copy(values, values + image.block, pixel);
    }
}

// Calls `work` for each block of channels with the block's offset in the image and in the averages,
// and the number of its channels that are not padding.
template <typename Work>
void for_each_block(const ImageLayout& image, const Work& work) {
  const std::int64_t blocks = image.padded_channels / image.block;
#pragma omp parallel for
  for (std::int64_t i = 0; i < image.images * blocks; ++i) {
    const std::int64_t n = i / blocks;
    const std::int64_t b = i % blocks;
    const std::int64_t first = b * image.block;
    work(n * image.image + b * image.blocks, n * image.channels + first,
         std::min(image.block, image.channels - first));
  }
}

float share_of_pixel(const ImageLayout& image) {
  return 1.0F / static_cast<float>(image.height * image.width);
}

template <typename T>
Kernel average_pool(const ImageLayout& image) {
  return [image](const OpBuffers& buffers) {
    const T* x = elements<T>(buffers.inputs[0]);
    T* y = elements<T>(buffers.outputs[0]);
    const float share = share_of_pixel(image);
    for_each_block(image, [&](std::int64_t pixels, std::int64_t averages, std::int64_t channels) {
      float sums[kLargestBlock];
      sum_block(image, x + pixels, sums);
      for (std::int64_t c = 0; c < channels; ++c) store(y[averages + c], share * sums[c]);
    });
  };
}

template <typename T>
Kernel average_pool_backward(const ImageLayout& image) {
  return [image](const OpBuffers& buffers) {
    const T* dy = elements<T>(buffers.inputs[0]);
    T* dx = elements<T>(buffers.outputs[0]);
    const float share = share_of_pixel(image);
    for_each_block(image, [&](std::int64_t pixels, std::int64_t averages, std::int64_t channels) {
      T values[kLargestBlock] = {};  // zeros in the padding
      for (std::int64_t c = 0; c < channels; ++c) store(values[c], share * load(dy[averages + c]));
      spread_block(image, values, dx + pixels);
    });
  };
}

}  // namespace

Kernel make_average_pool(const Op& op, const Program& program) {
  const Value& x = program.value(op.inputs[0]);
  return for_type_of(x, [&]<typename T>(T) { return average_pool<T>(image_layout(op, x)); });
}

Kernel make_average_pool_backward(const Op& op, const Program& program) {
  const Value& dx = program.value(op.outputs[0]);
  return for_type_of(dx,
                     [&]<typename T>(T) { return average_pool_backward<T>(image_layout(op, dx)); });
}

}  // namespace headroom::host
