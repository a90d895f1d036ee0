// Random numbers that are the same on every standard library (its distributions are not).
#pragma once

#include <cmath>
#include <numbers>
#include <random>

namespace headroom {

// Normal around 0 with deviation 1, after Box and Muller; the same up to the last bit of log and
// cos.
inline double normal(std::mt19937_64& random) {
  const double u = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace headroom
