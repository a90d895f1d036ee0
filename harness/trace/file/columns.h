// One column of a chunk: up to 2^16 integers modulo 2^64, each stored in as few bytes as the column
// needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headroom::trace_file {

// Appends the values themselves, or their differences where those are narrower.
void append_column(std::span<const std::uint64_t> values, std::string& content);

// Decodes the values of a column, a strip at a time.
class ColumnReader {
 public:
  // Removes a column of `count` values from the front of `content`. Throws InputError when there is
  // no valid column.
  ColumnReader(std::string_view& content, std::size_t count);

  // Reads the next values, no more than the column has left.
  void take(std::span<std::uint64_t> values);

 private:
  bool differences_ = false;
  std::uint8_t width_ = 0;      // bytes per value
  std::uint64_t previous_ = 0;  // the previous value, when differences are stored
  std::uint64_t base_ = 0;
  const char* next_ = nullptr;
};

}  // namespace headroom::trace_file
