// The only code that knows what Value::layout holds under onednn rules: the library's memory
// descriptor. Used by lowering and by the host's kernels.
#pragma once

#include <dnnl.hpp>

#include "harness/program/value.h"

namespace headroom::onednn {

#if DNNL_VERSION_MAJOR < 3
// The descriptor of oneDNN 2 with the functions of oneDNN 3.
struct Layout : dnnl::memory::desc {
  using desc::desc;
  Layout(const desc& descriptor) : desc(descriptor) {}  // NOLINT(google-explicit-constructor)

  dnnl::memory::dims get_dims() const { return dims(); }
  dnnl::memory::data_type get_data_type() const { return data_type(); }
  dnnl::memory::format_kind get_format_kind() const {
    return static_cast<dnnl::memory::format_kind>(data.format_kind);
  }
  dnnl::memory::dims get_padded_dims() const { return numbers(data.padded_dims, data.ndims); }
  dnnl::memory::dim get_submemory_offset() const { return data.offset0; }
  dnnl::memory::dims get_strides() const { return numbers(blocking().strides, data.ndims); }
  int get_inner_nblks() const { return blocking().inner_nblks; }
  dnnl::memory::dims get_inner_blks() const {
    return numbers(blocking().inner_blks, get_inner_nblks());
  }
  dnnl::memory::dims get_inner_idxs() const {
    return numbers(blocking().inner_idxs, get_inner_nblks());
  }

 private:
  const dnnl_blocking_desc_t& blocking() const { return data.format_desc.blocking; }
  static dnnl::memory::dims numbers(const dnnl_dim_t* first, int count) {
    return {first, first + count};
  }
};
#else
using Layout = dnnl::memory::desc;
#endif

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
