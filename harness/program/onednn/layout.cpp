#include "harness/program/onednn/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "harness/base/error.h"

namespace headroom::onednn {
namespace {

using dnnl::memory;

static_assert(std::is_trivially_copyable_v<dnnl_memory_desc_t>, "oneDNN 2 keeps it a plain struct");

memory::data_type to_library(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return memory::data_type::f32;
    case DType::bf16:
      return memory::data_type::bf16;
    case DType::f16:
      return memory::data_type::f16;
    case DType::s32:
      return memory::data_type::s32;
    case DType::u8:
    case DType::f8e4m3:  // oneDNN 2 has neither: it moves their codes and computes with none
    case DType::f8e5m2:
      return memory::data_type::u8;
  }
  throw Error("not an element type");
}

DType from_library(memory::data_type type) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::s32, DType::u8})
    if (to_library(dtype) == type) return dtype;
  throw Error("oneDNN chose an element type that a Program cannot have");
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Layout plain_layout(const Shape& shape, DType dtype) {
  memory::dims strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return {shape, to_library(dtype), strides};
}

Layout row_major(const Layout& layout) {
  return plain_layout(layout.dims(), from_library(layout.data_type()));
}

Layout in_type(const Layout& layout, DType dtype) {
  if (layout.data.format_kind != dnnl_blocked) return plain_layout(layout.dims(), dtype);
  dnnl_memory_desc_t data = layout.data;
  data.data_type = memory::convert_to_c(to_library(dtype));
  return Layout(data);
}

Layout in_type(const Layout& layout, const Layout& typed) {
  return in_type(layout, from_library(typed.data_type()));
}

Layout free_layout(const Shape& shape, DType dtype) {
  return {shape, to_library(dtype), memory::format_tag::any};
}

Layout layout_of(const Value& value) {
  if (value.layout.empty()) return plain_layout(value.shape, value.dtype);
  dnnl_memory_desc_t descriptor;
  if (value.layout.size() != sizeof descriptor)
    throw Error(fmt::format("'{}' has a layout that is not oneDNN's", value.name));
  std::memcpy(&descriptor, value.layout.data(), sizeof descriptor);
  return Layout(descriptor);
}

void set_layout(Value& value, const Layout& layout) {
  if (layout.dims() != value.shape)
    throw Error(fmt::format("'{}' has shape {}, but its layout has another", value.name,
                            to_string(value.shape)));
  if (to_library(value.dtype) != layout.data_type()) value.dtype = from_library(layout.data_type());
  value.bytes = layout.get_size();
  value.layout.clear();
  if (layout == plain_layout(value.shape, value.dtype)) return;
  value.layout.assign(reinterpret_cast<const char*>(&layout.data), sizeof layout.data);
}

bool read_image_layout(const Layout& layout, ImageLayout& image) {
  const dnnl_memory_desc_t& data = layout.data;
  if (data.ndims != 4 || data.format_kind != dnnl_blocked || data.offset0 != 0) return false;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  if (blocking.inner_nblks > 1) return false;
  if (blocking.inner_nblks == 1 && blocking.inner_idxs[0] != 1) return false;
  image = {.images = data.dims[0],
           .channels = data.dims[1],
           .height = data.dims[2],
           .width = data.dims[3],
           .padded_channels = data.padded_dims[1],
           .block = blocking.inner_nblks == 1 ? blocking.inner_blks[0] : 1,
           .image = blocking.strides[0],
           .blocks = blocking.strides[1],
           .row = blocking.strides[2],
           .column = blocking.strides[3]};
  return true;
}

std::size_t channel_lanes(const ImageLayout& image) {
  const bool one_pixel = image.height * image.width == 1;  // strides mean nothing
  if (!one_pixel && image.row != image.width * image.column) return 0;
  if (image.block > 1) {
    const bool known = image.block == 8 || image.block == 16;
    return known && (one_pixel || image.column == image.block)
               ? static_cast<std::size_t>(image.block)
               : 0;
  }
  if (image.blocks != 1 || (!one_pixel && image.column != image.channels)) return 0;
  return image.channels % 16 == 0 ? 16 : image.channels % 8 == 0 ? 8 : 0;
}

bool lies_in_channel_groups(const Layout& layout) {
  ImageLayout image;
  return layout.data_type() == memory::data_type::f32 && read_image_layout(layout, image) &&
         channel_lanes(image) > 0;
}

Layout grouped_channels(const Shape& shape) {
  return {shape, memory::data_type::f32, memory::format_tag::nChw8c};
}

}  // namespace headroom::onednn
