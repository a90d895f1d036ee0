#include "bench/scenarios/int8_weights.h"

#include <algorithm>
#include <cmath>

namespace headroom {

Int8Rows quantise(std::span<const float> weights, std::size_t rows) {
  Int8Rows result{.numbers = std::vector<std::int8_t>(weights.size()), .scales = {}};
  const std::size_t columns = weights.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto of_row = weights.subspan(row * columns, columns);
    float largest = 0;
    for (const float weight : of_row) largest = std::max(largest, std::abs(weight));
    const float scale = largest / 127;
    result.scales.push_back(scale);
    for (std::size_t j = 0; scale > 0 && j < columns; ++j)
      result.numbers[row * columns + j] =
          static_cast<std::int8_t>(std::clamp(std::lround(of_row[j] / scale), -127L, 127L));
  }
  return result;
}

}  // namespace headroom
