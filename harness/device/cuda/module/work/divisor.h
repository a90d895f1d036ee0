// Division by a number that is known before a kernel starts. GPUs have no instruction that divides
// 64 bits; a multiplication and a shift take the place of the loop that would.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define HEADROOM_DEVICE __host__ __device__
#else
#define HEADROOM_DEVICE
#endif

namespace headroom::cuda {

using Index = std::int64_t;

// i / divisor and i % divisor are exact for every i from 0 on: Granlund and Montgomery, Division by
// invariant integers using multiplication (1994), section 4, for dividends below 2^63.
class Divisor {
 public:
  Divisor(Index divisor)  // NOLINT(google-explicit-constructor): stands for the number
      : divisor_(divisor), shift_(std::bit_width(static_cast<std::uint64_t>(divisor) - 1)) {
    const auto number = static_cast<Wide>(divisor);
    factor_ = static_cast<std::uint64_t>((((Wide{1} << shift_) - number) << 64) / number + 1);
  }
  HEADROOM_DEVICE operator Index() const { return divisor_; }  // NOLINT(google-explicit-*)

  friend HEADROOM_DEVICE Index operator/(Index i, const Divisor& by) {
    const auto n = static_cast<std::uint64_t>(i);
    const auto high = static_cast<std::uint64_t>((Wide{n} * by.factor_) >> 64);
    return static_cast<Index>((high + n) >> by.shift_);
  }
  friend HEADROOM_DEVICE Index operator%(Index i, const Divisor& by) {
    return i - i / by * by.divisor_;
  }

 private:
  __extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): nvcc takes no other

  Index divisor_;
  std::uint64_t factor_;
  int shift_;
};

}  // namespace headroom::cuda
