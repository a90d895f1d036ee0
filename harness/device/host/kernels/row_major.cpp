#include "harness/device/host/kernels/row_major.h"

#include <algorithm>

namespace headroom::host {
namespace {

bool lies_side_by_side(const onednn::MatrixPlaces& places) {
  for (std::size_t i = 0; i < places.rows.size(); ++i)
    if (places.rows[i] != i * places.columns.size()) return false;
  for (std::size_t j = 0; j < places.columns.size(); ++j)
    if (places.columns[j] != j) return false;
  return true;
}

}  // namespace

RowMajor::RowMajor(const Value& value)
    : places_(onednn::matrix_places(value)), side_by_side_(lies_side_by_side(places_)) {}

// Calls visit_part(offset of the row, its column offsets, length, elements visited before)
// for each row, or the part of it that is asked for.
template <typename Visit>
void RowMajor::visit(std::size_t begin, std::size_t count, Visit visit_part) const {
  std::size_t row = begin / columns(), column = begin % columns();
  for (std::size_t done = 0; done < count; ++row, column = 0) {
    const std::size_t length = std::min(count - done, columns() - column);
    visit_part(places_.rows[row], places_.columns.data() + column, length, done);
    done += length;
  }
}

const float* RowMajor::open(const float* data, std::size_t begin, std::size_t count,
                            float* buffer) const {
  if (side_by_side_) return data + begin;
  visit(begin, count,
        [&](std::size_t row, const std::size_t* column, std::size_t length, std::size_t done) {
          for (std::size_t i = 0; i < length; ++i) buffer[done + i] = data[row + column[i]];
        });
  return buffer;
}

float* RowMajor::open(float* data, std::size_t begin, std::size_t count, float* buffer) const {
  return const_cast<float*>(open(static_cast<const float*>(data), begin, count, buffer));
}

void RowMajor::close(float* data, std::size_t begin, std::size_t count, const float* opened) const {
  if (side_by_side_) return;
  visit(begin, count,
        [&](std::size_t row, const std::size_t* column, std::size_t length, std::size_t done) {
          for (std::size_t i = 0; i < length; ++i) data[row + column[i]] = opened[done + i];
        });
}

}  // namespace headroom::host
