// The one place that knows what Value::layout holds under onednn rules: the library's memory
// descriptor. Read by lowering and by the host's kernels.
#pragma once

#include <dnnl.hpp>

#include "harness/program/value.h"

namespace headroom::onednn {

using Layout = dnnl::memory::desc;

// The one CPU engine of the process.
const dnnl::engine& engine();

// Row-major, as the host sees it.
Layout plain_layout(const Shape& shape, DType dtype);
Layout row_major(const Layout& layout);  // the same tensor
// The library may choose.
Layout free_layout(const Shape& shape, DType dtype);
// The elements of another type in the same places; row-major where the library keeps these places
// to itself.
Layout in_type(const Layout& layout, DType dtype);
Layout in_type(const Layout& layout, const Layout& typed);

Layout layout_of(const Value& value);
// Sets layout, bytes and element type of a value; the shape is checked.
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
// How many neighbouring channels of a pixel lie side by side, 16 or 8, where all of an image's can
// be taken in such groups, pixel after pixel in even steps; 0 elsewhere.
std::size_t channel_lanes(const ImageLayout& image);
// Whether they can, and are f32.
bool lies_in_channel_groups(const Layout& layout);
// A layout in which they can, with channels padded to whole groups.
Layout grouped_channels(const Shape& shape);

}  // namespace headroom::onednn
