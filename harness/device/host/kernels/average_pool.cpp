#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/program/onednn/layout.h"

namespace headroom::host {
namespace {

using onednn::ImageLayout;

constexpr std::int64_t kLargestBlock = 64;

ImageLayout image_layout(const Op& op, const Value& value) {
  ImageLayout image;
  if (!onednn::read_image_layout(onednn::layout_of(value), image) || image.block > kLargestBlock)
    throw Error(fmt::format("{} ({}): '{}' has a layout this kernel cannot read", op.name, op.kind,
                            value.name));
  return image;
}

// Sums, in one block of one image, the pixels of each channel; `sums` holds image.block floats.
void sum_block(const ImageLayout& image, const float* block, float* sums) {
  std::fill(sums, sums + image.block, 0.0F);
  for (std::int64_t h = 0; h < image.height; ++h)
    for (std::int64_t w = 0; w < image.width; ++w) {
      const float* pixel = block + h * image.row + w * image.column;
      for (std::int64_t c = 0; c < image.block; ++c) sums[c] += pixel[c];
    }
}

void spread_block(const ImageLayout& image, const float* values, float* block) {
  for (std::int64_t h = 0; h < image.height; ++h)
    for (std::int64_t w = 0; w < image.width; ++w) {
      float* pixel = block + h * image.row + w * image.column;
      std::copy(values, values + image.block, pixel);
    }
}

}  // namespace

Kernel make_average_pool(const Op& op, const Program& program) {
  const ImageLayout image = image_layout(op, program.value(op.inputs[0]));
  return [image](const OpBuffers& buffers) {
    const float* x = floats(buffers.inputs[0]);
    float* y = floats(buffers.outputs[0]);
    const float share = 1.0F / static_cast<float>(image.height * image.width);
    const std::int64_t blocks = image.padded_channels / image.block;
#pragma omp parallel for
    for (std::int64_t i = 0; i < image.images * blocks; ++i) {
      const std::int64_t n = i / blocks;
      const std::int64_t b = i % blocks;
      float sums[kLargestBlock];
      sum_block(image, x + n * image.image + b * image.blocks, sums);
      const std::int64_t first = b * image.block;
      const std::int64_t last = std::min(first + image.block, image.channels);
      for (std::int64_t c = first; c < last; ++c)
        y[n * image.channels + c] = share * sums[c - first];
    }
  };
}

Kernel make_average_pool_backward(const Op& op, const Program& program) {
  const ImageLayout image = image_layout(op, program.value(op.outputs[0]));
  return [image](const OpBuffers& buffers) {
    const float* dy = floats(buffers.inputs[0]);
    float* dx = floats(buffers.outputs[0]);
    const float share = 1.0F / static_cast<float>(image.height * image.width);
    const std::int64_t blocks = image.padded_channels / image.block;
#pragma omp parallel for
    for (std::int64_t i = 0; i < image.images * blocks; ++i) {
      const std::int64_t n = i / blocks;
      const std::int64_t b = i % blocks;
      float values[kLargestBlock] = {};  // zeros in the padding
      const std::int64_t first = b * image.block;
      const std::int64_t last = std::min(first + image.block, image.channels);
      for (std::int64_t c = first; c < last; ++c)
        values[c - first] = share * dy[n * image.channels + c];
      spread_block(image, values, dx + n * image.image + b * image.blocks);
    }
  };
}

}  // namespace headroom::host
