// Host buffers of s32 inputs. For batch sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace headroom {

using Numbers = std::span<std::int32_t>;

inline Numbers numbers(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::int32_t*>(bytes.data()), bytes.size() / sizeof(std::int32_t)};
}

// Draws dropout keys from a separate random stream, so that batches do not depend on dropout.
class DropoutKeys {
 public:
  explicit DropoutKeys(std::uint64_t seed) : random_(seed ^ 0x6B65797300000000ULL) {}

  void write_next(Numbers key) {
    for (std::int32_t& word : key) word = static_cast<std::int32_t>(random_() >> 32U);
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace headroom
