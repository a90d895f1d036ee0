// Weights in 8 bits after training, as in TensorFlow Lite's dynamic-range quantisation, for
// deployment scenarios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// A quantised matrix: each element is a number in -127 to 127, symmetric around 0, times the scale
// of its row.
struct Int8Rows {
  std::vector<std::int8_t> numbers;
  std::vector<float> scales;  // one per row; 0 for a row of zeros

  float at(std::size_t element) const {
    const std::size_t columns = numbers.size() / scales.size();
    return static_cast<float>(numbers[element]) * scales[element / columns];
  }
};
// `weights` are `rows` rows of equal length.
Int8Rows quantise(std::span<const float> weights, std::size_t rows);

}  // namespace headroom
