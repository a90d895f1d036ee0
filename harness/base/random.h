// Random numbers that are identical on every standard library, whose own distributions are not.
#pragma once

#include <cmath>
#include <numbers>
#include <random>

namespace headroom {

// Numbers of the stream that one normal deviate takes.
inline constexpr unsigned long long kDrawsPerNormal = 2;

// A normal deviate with mean 0 and standard deviation 1, by Box and Muller's method. Results are
// identical across platforms except for the last bit of log and cos.
inline double normal(std::mt19937_64& random) {
  const double u = (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
  const double v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace headroom
