#include "harness/device/host/kernels/images/images.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace headroom::host {

ImageLayout image_layout(const Op& op, const Value& value) {
  ImageLayout image;
  if (!onednn::read_image_layout(onednn::layout_of(value), image) || image.block > kLargestBlock)
    throw Error(fmt::format("{} ({}): '{}' has a layout this kernel cannot read", op.name, op.kind,
                            value.name));
  return image;
}

}  // namespace headroom::host
