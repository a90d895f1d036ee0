// Weights in 8 bits after training, as TensorFlow Lite's dynamic-range quantisation keeps them: for
// scenarios of deployment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// Of a matrix: each row's numbers times its scale, symmetric around 0, -127 to 127.
struct Int8Rows {
  std::vector<std::int8_t> numbers;
  std::vector<float> scales;  // one a row; 0 where all of it is 0

  float at(std::size_t element) const {
    const std::size_t columns = numbers.size() / scales.size();
    return static_cast<float>(numbers[element]) * scales[element / columns];
  }
};
// `weights` are `rows` rows of equal length.
Int8Rows quantise(std::span<const float> weights, std::size_t rows);

}  // namespace headroom
