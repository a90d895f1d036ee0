// One column of a chunk: up to 2^16 whole numbers modulo 2^64, in as few bytes each as they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headroom::trace_file {

// Appends the values as they are, or as differences where those are narrower.
void append_column(std::span<const std::uint64_t> values, std::string& content);

// Takes the values out again, a strip at a time.
class ColumnReader {
 public:
  // Cuts a column of `count` values off the front of `content`. Throws InputError when it is not
  // one.
  ColumnReader(std::string_view& content, std::size_t count);

  // The next values; no more than the column has.
  void take(std::span<std::uint64_t> values);

 private:
  bool differences_ = false;
  std::uint8_t width_ = 0;      // bytes a value
  std::uint64_t previous_ = 0;  // value before the next, of differences
  std::uint64_t base_ = 0;
  const char* next_ = nullptr;
};

}  // namespace headroom::trace_file
