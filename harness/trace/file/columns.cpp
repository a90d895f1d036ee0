#include "harness/trace/file/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/base/error.h"

namespace headroom::trace_file {
namespace {

constexpr std::size_t kHeadBytes = 2 + 2 * sizeof(std::uint64_t);

// The range of values compared as signed integers, so that −1 does not widen a column.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t span = 0;
};

template <typename ValueAt>
Range range_of(std::size_t begin, std::size_t end, const ValueAt& value_at) {
  if (begin == end) return {};
  auto low = static_cast<std::int64_t>(value_at(begin));
  std::int64_t high = low;
  for (std::size_t i = begin + 1; i < end; ++i) {
    const auto value = static_cast<std::int64_t>(value_at(i));
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return {static_cast<std::uint64_t>(low),
          static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
}

std::uint8_t width_of(std::uint64_t span) {
  if (span == 0) return 0;
  if (span <= 0xff) return 1;
  if (span <= 0xffff) return 2;
  return span <= 0xffff'ffff ? 4 : 8;
}

template <typename Number>
void append(std::string& content, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  content.append(bytes, sizeof number);
}

template <typename Stored, typename ValueAt>
void append_all(std::string& content, std::size_t count, std::uint64_t base,
                const ValueAt& value_at) {
  const std::size_t old_size = content.size();
  content.resize(old_size + count * sizeof(Stored));
  char* to = content.data() + old_size;
  for (std::size_t i = 0; i < count; ++i, to += sizeof(Stored)) {
    const auto stored = static_cast<Stored>(value_at(i) - base);
    std::memcpy(to, &stored, sizeof stored);
  }
}

template <typename ValueAt>
void append_narrow(std::string& content, std::size_t count, std::uint8_t width, std::uint64_t base,
                   const ValueAt& value_at) {
  switch (width) {
    case 1:
      return append_all<std::uint8_t>(content, count, base, value_at);
    case 2:
      return append_all<std::uint16_t>(content, count, base, value_at);
    case 4:
      return append_all<std::uint32_t>(content, count, base, value_at);
    case 8:
      return append_all<std::uint64_t>(content, count, base, value_at);
    default:  // 0: every value equals the base
      return;
  }
}

template <typename Stored>
void widen(const char* from, std::uint64_t base, std::span<std::uint64_t> values) {
  for (std::uint64_t& value : values) {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    from += sizeof stored;
    value = base + stored;
  }
}

template <typename Number>
Number cut(std::string_view& content) {
  Number number;
  std::memcpy(&number, content.data(), sizeof number);
  content.remove_prefix(sizeof number);
  return number;
}

}  // namespace

void append_column(std::span<const std::uint64_t> values, std::string& content) {
  const std::size_t count = values.size();
  const auto plain = [&](std::size_t i) { return values[i]; };
  const auto difference = [&](std::size_t i) { return values[i] - values[i - 1]; };
  const Range as_is = range_of(0, count, plain);
  const Range differing = range_of(std::min<std::size_t>(1, count), count, difference);
  const bool differences = width_of(differing.span) < width_of(as_is.span);
  const Range range = differences ? differing : as_is;
  const std::uint8_t width = width_of(range.span);
  // The assumed value before the first, chosen so that the first difference is the smallest one.
  const std::uint64_t start = differences ? values[0] - range.low : 0;

  append<std::uint8_t>(content, differences ? 1 : 0);
  append<std::uint8_t>(content, width);
  append(content, start);
  append(content, range.low);
  if (differences)
    append_narrow(content, count, width, range.low,
                  [&](std::size_t i) { return values[i] - (i == 0 ? start : values[i - 1]); });
  else
    append_narrow(content, count, width, range.low, plain);
}

ColumnReader::ColumnReader(std::string_view& content, std::size_t count) {
  if (content.size() < kHeadBytes) throw InputError("ends early");
  const auto coding = cut<std::uint8_t>(content);
  width_ = cut<std::uint8_t>(content);
  previous_ = cut<std::uint64_t>(content);
  base_ = cut<std::uint64_t>(content);
  if (coding > 1) throw InputError(fmt::format("has the unknown coding {}", coding));
  if (width_ != 0 && width_ != 1 && width_ != 2 && width_ != 4 && width_ != 8)
    throw InputError(fmt::format("has values of {} bytes", width_));
  differences_ = coding == 1;
  if (content.size() < count * width_) throw InputError("ends early");
  next_ = content.data();
  content.remove_prefix(count * width_);
}

void ColumnReader::take(std::span<std::uint64_t> values) {
  switch (width_) {
    case 0:
      std::fill(values.begin(), values.end(), base_);
      break;
    case 1:
      widen<std::uint8_t>(next_, base_, values);
      break;
    case 2:
      widen<std::uint16_t>(next_, base_, values);
      break;
    case 4:
      widen<std::uint32_t>(next_, base_, values);
      break;
    default:
      widen<std::uint64_t>(next_, base_, values);
      break;
  }
  next_ += values.size() * width_;
  if (!differences_) return;
  for (std::uint64_t& value : values) value = previous_ += value;
}

}  // namespace headroom::trace_file
