// The elements of a tensor in row-major order, wherever its layout puts them: for loops that work
// on a few hundred at a time and want them side by side.
#pragma once

#include <cstddef>

#include "harness/program/onednn/places.h"

namespace headroom::host {

class RowMajor {
 public:
  // Throws NotSupported where the library keeps the places to itself.
  explicit RowMajor(const Value& value);

  std::size_t rows() const { return places_.rows.size(); }
  std::size_t columns() const { return places_.columns.size(); }
  std::size_t size() const { return rows() * columns(); }

  // Elements [begin, begin + count): where they lie if that is side by side, else their copies in
  // `buffer`. What is changed there counts after close().
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
