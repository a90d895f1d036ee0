#include "harness/program/onednn/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "harness/base/error.h"

namespace headroom::onednn {
namespace {

using dnnl::memory;

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

#if DNNL_VERSION_MAJOR < 3

static_assert(std::is_trivially_copyable_v<dnnl_memory_desc_t>, "oneDNN 2 keeps it a plain struct");

// The same layout for elements of another type; none where the library does not disclose the
// layout.
std::optional<Layout> retyped(const Layout& layout, memory::data_type type) {
  if (layout.get_format_kind() != memory::format_kind::blocked) return {};
  dnnl_memory_desc_t data = layout.data;
  data.data_type = memory::convert_to_c(type);
  return Layout(data);
}

std::string to_text(const Layout& layout) {
  return {reinterpret_cast<const char*>(&layout.data), sizeof layout.data};
}

std::optional<Layout> from_text(const std::string& text) {
  dnnl_memory_desc_t data;
  if (text.size() != sizeof data) return {};
  std::memcpy(&data, text.data(), sizeof data);
  return Layout(data);
}

#else

// oneDNN 3 changes no type, so this looks for the name of the layout.
std::optional<Layout> retyped(const Layout& layout, memory::data_type type) {
  if (layout.get_format_kind() != memory::format_kind::blocked) return {};
  const memory::dims sizes = layout.get_dims();
  if (layout.get_inner_nblks() == 0) return Layout(sizes, type, layout.get_strides());
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    const auto name = static_cast<memory::format_tag>(tag);
    const Layout named(sizes, layout.get_data_type(), name, /*allow_empty=*/true);
    if (named.get(true) != nullptr && named == layout) return Layout(sizes, type, name);
  }
  return {};
}

// Old versions of oneDNN 3 cannot write a layout down, so each one that was used has a number.
struct Numbered {
  std::mutex mutex;
  std::vector<Layout> layouts;
};
Numbered& numbered() {
  static Numbered numbered;
  return numbered;
}

std::string to_text(const Layout& layout) {
  const std::lock_guard lock(numbered().mutex);
  std::vector<Layout>& layouts = numbered().layouts;
  const auto found = std::find(layouts.begin(), layouts.end(), layout);
  const auto number = found - layouts.begin();
  if (found == layouts.end()) layouts.push_back(layout);
  return std::to_string(number);
}

std::optional<Layout> from_text(const std::string& text) {
  const std::lock_guard lock(numbered().mutex);
  const std::vector<Layout>& layouts = numbered().layouts;
  std::size_t number = layouts.size();
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (number >= layouts.size()) return {};
  return layouts[number];
}

#endif

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
  return plain_layout(layout.get_dims(), from_library(layout.get_data_type()));
}

Layout in_type(const Layout& layout, DType dtype) {
  return retyped(layout, to_library(dtype)).value_or(plain_layout(layout.get_dims(), dtype));
}

Layout in_type(const Layout& layout, const Layout& typed) {
  return in_type(layout, from_library(typed.get_data_type()));
}

Layout free_layout(const Shape& shape, DType dtype) {
  return {shape, to_library(dtype), memory::format_tag::any};
}

Layout layout_of(const Value& value) {
  if (value.layout.empty()) return plain_layout(value.shape, value.dtype);
  if (const std::optional<Layout> layout = from_text(value.layout)) return *layout;
  throw Error(fmt::format("'{}' has a layout that is not oneDNN's", value.name));
}

void set_layout(Value& value, const Layout& layout) {
  if (layout.get_dims() != value.shape)
    throw Error(fmt::format("'{}' has shape {}, but its layout has another", value.name,
                            to_string(value.shape)));
  if (to_library(value.dtype) != layout.get_data_type())
    value.dtype = from_library(layout.get_data_type());
  value.bytes = layout.get_size();
  value.layout.clear();
  if (layout == plain_layout(value.shape, value.dtype)) return;
  value.layout = to_text(layout);
}

bool read_image_layout(const Layout& layout, ImageLayout& image) {
  const memory::dims sizes = layout.get_dims();
  if (sizes.size() != 4 || layout.get_format_kind() != memory::format_kind::blocked ||
      layout.get_submemory_offset() != 0)
    return false;
  const int blocks = layout.get_inner_nblks();
  if (blocks > 1 || (blocks == 1 && layout.get_inner_idxs()[0] != 1)) return false;
  const memory::dims strides = layout.get_strides();
  image = {.images = sizes[0],
           .channels = sizes[1],
           .height = sizes[2],
           .width = sizes[3],
           .padded_channels = layout.get_padded_dims()[1],
           .block = blocks == 1 ? layout.get_inner_blks()[0] : 1,
           .image = strides[0],
           .blocks = strides[1],
           .row = strides[2],
           .column = strides[3]};
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
  return layout.get_data_type() == memory::data_type::f32 && read_image_layout(layout, image) &&
         channel_lanes(image) > 0;
}

Layout grouped_channels(const Shape& shape) {
  return {shape, memory::data_type::f32, memory::format_tag::nChw8c};
}

}  // namespace headroom::onednn
