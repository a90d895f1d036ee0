#include "harness/program/onednn/places.h"

#include "harness/base/error.h"
#include "harness/program/onednn/layout.h"

namespace headroom::onednn {
namespace {

// Returns the contribution of index `i` of a dimension to an offset. The last inner block is the
// innermost; of several blocks of one dimension, each later one holds lower digits of the index.
std::size_t offset_along(const dnnl_memory_desc_t& data, int dimension, std::int64_t i) {
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (int block = blocking.inner_nblks; block-- > 0;) {
    const std::int64_t size = blocking.inner_blks[block];
    if (blocking.inner_idxs[block] == dimension) {
      offset += i % size * stride;
      i /= size;
    }
    stride *= size;
  }
  return static_cast<std::size_t>(offset + i * blocking.strides[dimension]);
}

}  // namespace

MatrixPlaces matrix_places(const Value& value) {
  const dnnl_memory_desc_t data = layout_of(value).data;
  if (data.format_kind != dnnl_blocked || data.offset0 != 0)
    throw NotSupported("oneDNN does not disclose the layout of '" + value.name + "'");
  MatrixPlaces places{.rows = {0}, .columns = {0}};
  for (int dimension = 0; dimension < data.ndims; ++dimension) {
    const bool is_row = dimension == 0 && data.ndims > 1;
    std::vector<std::size_t>& outer = is_row ? places.rows : places.columns;
    std::vector<std::size_t> inner;
    for (const std::size_t start : outer)
      for (std::int64_t i = 0; i < data.dims[dimension]; ++i)
        inner.push_back(start + offset_along(data, dimension, i));
    outer = std::move(inner);
  }
  return places;
}

}  // namespace headroom::onednn
