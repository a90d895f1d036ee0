#include "bench/scenarios/sparse_weights.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "harness/base/error.h"

namespace headroom {
namespace {

class Writer {
 public:
  template <typename Number>
  void put(const Number& number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // Fills each byte from its lowest bit.
  void put_bits(unsigned bits, int count) {
    for (int i = 0; i < count; ++i) {
      if (bits_in_last_ == 0) bytes_.push_back(std::byte{0});
      bytes_.back() |= static_cast<std::byte>(((bits >> i) & 1U) << bits_in_last_);
      bits_in_last_ = (bits_in_last_ + 1) % 8;
    }
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  int bits_in_last_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  Number get(std::size_t at) const {
    Number number;
    if (at + sizeof number > bytes_.size()) fail();
    std::memcpy(&number, bytes_.data() + at, sizeof number);
    return number;
  }
  unsigned bits(std::size_t first, std::size_t count) const {
    unsigned result = 0;
    for (std::size_t i = 0; i < count; ++i)
      result |= (std::to_integer<unsigned>(get<std::byte>((first + i) / 8)) >> (first + i) % 8 & 1U)
                << i;
    return result;
  }
  [[noreturn]] static void fail() { throw Error("compressed weights are damaged"); }

 private:
  std::span<const std::byte> bytes_;
};

std::size_t count_of(const Shape& shape) { return static_cast<std::size_t>(element_count(shape)); }
std::size_t rows_of(const Shape& shape) { return static_cast<std::size_t>(shape[0]); }
constexpr std::size_t bytes_for(std::size_t bits) { return (bits + 7) / 8; }

// The positions of the members of a group of four: neighbours along the second dimension.
class Groups {
 public:
  explicit Groups(const Shape& shape) : count_(count_of(shape) / 4) {
    for (std::size_t d = 2; d < shape.size(); ++d) apart_ *= static_cast<std::size_t>(shape[d]);
  }
  std::size_t count() const { return count_; }
  std::size_t element(std::size_t group, std::size_t member) const {
    return group / apart_ * 4 * apart_ + group % apart_ + member * apart_;
  }

 private:
  std::size_t count_, apart_ = 1;
};

std::vector<std::byte> pack_rows(std::span<const float> weights, const Shape& shape) {
  const std::size_t columns = weights.size() / rows_of(shape);
  Writer numbers;
  for (const float weight : weights)
    if (weight != 0) numbers.put(weight);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0) numbers.put(static_cast<std::int32_t>(i % columns));
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i % columns == 0) numbers.put(begin);
    begin += weights[i] != 0 ? 1 : 0;
  }
  numbers.put(begin);
  return std::move(numbers).take();
}

void unpack_rows(const Reader& packed, std::size_t bytes, std::size_t rows,
                 std::vector<float>& weights) {
  const std::size_t columns = weights.size() / rows;
  const std::size_t starts = 4 * (rows + 1);
  if (bytes < starts || (bytes - starts) % 8 != 0) Reader::fail();
  const std::size_t numbers = (bytes - starts) / 8;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = packed.get<std::uint32_t>(8 * numbers + 4 * row);
    const auto end = packed.get<std::uint32_t>(8 * numbers + 4 * (row + 1));
    if (begin > end || end > numbers) Reader::fail();
    for (std::size_t i = begin; i < end; ++i) {
      const auto column = packed.get<std::uint32_t>(4 * (numbers + i));
      if (column >= columns) Reader::fail();
      weights[row * columns + column] = packed.get<float>(4 * i);
    }
  }
}

std::vector<std::byte> pack_bitmap(std::span<const float> weights) {
  Writer writer;
  for (const float weight : weights) writer.put_bits(weight != 0 ? 1 : 0, 1);
  for (const float weight : weights)
    if (weight != 0) writer.put(weight);
  return std::move(writer).take();
}

void unpack_bitmap(const Reader& packed, std::vector<float>& weights) {
  std::size_t at = bytes_for(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (packed.bits(i, 1) == 0) continue;
    weights[i] = packed.get<float>(at);
    at += sizeof(float);
  }
}

// The positions of the two elements kept of a group: its non-zero numbers, filled up with zeros
// where there are fewer than two.
std::optional<std::array<std::size_t, 2>> kept_of(std::span<const float> weights,
                                                  const Groups& groups, std::size_t group) {
  std::array<std::size_t, 4> places = {0, 1, 2, 3};
  const auto is_number = [&](std::size_t place) {
    return weights[groups.element(group, place)] != 0;
  };
  const auto zeros = std::stable_partition(places.begin(), places.end(), is_number);
  if (zeros - places.begin() > 2) return std::nullopt;
  return std::array{std::min(places[0], places[1]), std::max(places[0], places[1])};
}

std::optional<std::vector<std::byte>> pack_groups(std::span<const float> weights,
                                                  const Shape& shape) {
  const Groups groups(shape);
  Writer numbers;
  std::vector<std::array<std::size_t, 2>> all;
  for (std::size_t group = 0; group < groups.count(); ++group) {
    const auto kept = kept_of(weights, groups, group);
    if (!kept) return std::nullopt;
    for (const std::size_t place : *kept) {
      const float weight = weights[groups.element(group, place)];
      numbers.put(weight == 0 ? 0.0F : weight);
    }
    all.push_back(*kept);
  }
  for (const auto& kept : all)
    for (const std::size_t place : kept) numbers.put_bits(static_cast<unsigned>(place), 2);
  return std::move(numbers).take();
}

void unpack_groups(const Reader& packed, const Shape& shape, std::vector<float>& weights) {
  const Groups groups(shape);
  const std::size_t indices = 64 * groups.count();  // bits taken by the numbers, which come first
  for (std::size_t i = 0; i < 2 * groups.count(); ++i)
    weights[groups.element(i / 2, packed.bits(indices + 2 * i, 2))] = packed.get<float>(4 * i);
}

}  // namespace

std::optional<SparseForm> sparse_form_of(std::string_view name) {
  if (name == "csr") return SparseForm::csr;
  if (name == "bitmap") return SparseForm::bitmap;
  if (name == "two_of_four") return SparseForm::two_of_four;
  return std::nullopt;
}

bool fits(SparseForm form, const Shape& shape) {
  return shape.size() >= 2 && (form != SparseForm::two_of_four || shape[1] % 4 == 0);
}

std::optional<std::vector<std::byte>> pack(SparseForm form, std::span<const float> weights,
                                           const Shape& shape) {
  switch (form) {
    case SparseForm::csr:
      return pack_rows(weights, shape);
    case SparseForm::bitmap:
      return pack_bitmap(weights);
    case SparseForm::two_of_four:
      return pack_groups(weights, shape);
  }
  throw Error("unknown form of storage");
}

std::vector<float> unpack(SparseForm form, std::span<const std::byte> packed, const Shape& shape) {
  std::vector<float> weights(count_of(shape));
  const Reader reader(packed);
  if (form == SparseForm::csr) unpack_rows(reader, packed.size(), rows_of(shape), weights);
  if (form == SparseForm::bitmap) unpack_bitmap(reader, weights);
  if (form == SparseForm::two_of_four) unpack_groups(reader, shape, weights);
  const auto numbers = static_cast<std::size_t>(
      std::count_if(weights.begin(), weights.end(), [](float weight) { return weight != 0; }));
  if (packed.size() != packed_bytes(form, shape, numbers)) Reader::fail();
  return weights;
}

Bytes packed_bytes(SparseForm form, const Shape& shape, std::size_t numbers) {
  const std::size_t count = count_of(shape);
  switch (form) {
    case SparseForm::csr:
      return 8 * numbers + 4 * (rows_of(shape) + 1);
    case SparseForm::bitmap:
      return 4 * numbers + bytes_for(count);
    case SparseForm::two_of_four:
      return 2 * count + bytes_for(count);
  }
  throw Error("unknown form of storage");
}

std::optional<double> break_even_sparsity(SparseForm form, std::span<const Shape> shapes) {
  double dense = 0, of_zeros = 0, full = 0;  // total bytes
  for (const Shape& shape : shapes) {
    dense += 4 * static_cast<double>(count_of(shape));
    of_zeros += static_cast<double>(packed_bytes(form, shape, 0));
    full += static_cast<double>(packed_bytes(form, shape, count_of(shape)));
  }
  if (full == of_zeros) return std::nullopt;
  return 1 - (dense - of_zeros) / (full - of_zeros);
}

}  // namespace headroom
