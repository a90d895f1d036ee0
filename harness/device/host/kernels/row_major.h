// Gives access to the elements of a tensor in row-major order, whatever its layout, for loops that
// process a few hundred contiguous elements at a time.
#pragma once

#include <cstddef>

#include "harness/program/onednn/places.h"

namespace headroom::host {

class RowMajor {
 public:
  // Throws NotSupported for a layout that the library does not disclose.
  explicit RowMajor(const Value& value);

  std::size_t rows() const { return places_.rows.size(); }
  std::size_t columns() const { return places_.columns.size(); }
  std::size_t size() const { return rows() * columns(); }

  // Elements [begin, begin + count): in place if they are contiguous, else copied to `buffer`.
  // Changes take effect after close().
  const float* open(const float* data, std::size_t begin, std::size_t count, float* buffer) const;
  float* open(float* data, std::size_t begin, std::size_t count, float* buffer) const;
  void close(float* data, std::size_t begin, std::size_t count, const float* opened) const;

 private:
  template <typename Visit>
  void visit(std::size_t begin, std::size_t count, Visit visit_run) const;

  onednn::MatrixPlaces places_;
  bool side_by_side_;
};

}  // namespace headroom::host
