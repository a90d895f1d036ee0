// The only code that knows what Value::layout holds under onednn rules: the library's memory
// descriptor. Used by lowering and by the host's kernels.
#pragma once

#include <dnnl.hpp>

#include "harness/program/value.h"

namespace headroom::onednn {

using Layout = dnnl::memory::desc;

// The one CPU engine of the process.
const dnnl::engine& engine();

// Row-major, as the host stores it.
Layout plain_layout(const Shape& shape, DType dtype);
Layout row_major(const Layout& layout);  // the same tensor
// A layout in which the library may choose the format.
Layout free_layout(const Shape& shape, DType dtype);
// The same layout for elements of another type; row-major where the library does not disclose the
// layout.
Layout in_type(const Layout& layout, DType dtype);
Layout in_type(const Layout& layout, const Layout& typed);

Layout layout_of(const Value& value);
// Sets layout, bytes and element type of a value after checking the shape.
void set_layout(Value& value, const Layout& layout);

// A 4-dimensional layout whose channels may come in blocks:
// offset(n, c, h, w) = n·image + (c / block)·blocks + c % block + h·row + w·column.
struct ImageLayout {
  std::int64_t images, channels, height, width;
  std::int64_t padded_channels;
  std::int64_t block = 1;
  std::int64_t image, blocks, row, column;
};
// False for layouts of any other form.
bool read_image_layout(const Layout& layout, ImageLayout& image);
// The number of adjacent channels of a pixel, 16 or 8, when all channels of an image can be read in
// such groups with a constant stride between pixels; else 0.
std::size_t channel_lanes(const ImageLayout& image);
// Whether the layout has such groups and element type f32.
bool lies_in_channel_groups(const Layout& layout);
// A layout with such groups, in which channels are padded to whole groups.
Layout grouped_channels(const Shape& shape);

}  // namespace headroom::onednn
