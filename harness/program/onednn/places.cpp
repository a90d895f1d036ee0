#include "harness/program/onednn/places.h"

#include "harness/base/error.h"
#include "harness/program/onednn/layout.h"

namespace headroom::onednn {
namespace {

struct Blocks {
  dnnl::memory::dims sizes, dimensions;  // of the inner blocks
  dnnl::memory::dims strides;
};

// Returns the contribution of index `i` of a dimension to an offset. The last inner block is the
// innermost; of several blocks of one dimension, each later one holds lower digits of the index.
std::size_t offset_along(const Blocks& blocks, std::size_t dimension, std::int64_t i) {
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (std::size_t block = blocks.sizes.size(); block-- > 0;) {
    const std::int64_t size = blocks.sizes[block];
    if (static_cast<std::size_t>(blocks.dimensions[block]) == dimension) {
      offset += i % size * stride;
      i /= size;
    }
    stride *= size;
  }
  return static_cast<std::size_t>(offset + i * blocks.strides[dimension]);
}

}  // namespace

MatrixPlaces matrix_places(const Value& value) {
  const Layout layout = layout_of(value);
  if (layout.get_format_kind() != dnnl::memory::format_kind::blocked ||
      layout.get_submemory_offset() != 0)
    throw NotSupported("oneDNN does not disclose the layout of '" + value.name + "'");
  MatrixPlaces places{.rows = {0}, .columns = {0}};
  const Blocks blocks{layout.get_inner_blks(), layout.get_inner_idxs(), layout.get_strides()};
  const dnnl::memory::dims sizes = layout.get_dims();
  for (std::size_t dimension = 0; dimension < sizes.size(); ++dimension) {
    const bool is_row = dimension == 0 && sizes.size() > 1;
    std::vector<std::size_t>& outer = is_row ? places.rows : places.columns;
    std::vector<std::size_t> inner;
    for (const std::size_t start : outer)
      for (std::int64_t i = 0; i < sizes[dimension]; ++i)
        inner.push_back(start + offset_along(blocks, dimension, i));
    outer = std::move(inner);
  }
  return places;
}

}  // namespace headroom::onednn
