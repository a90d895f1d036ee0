#include "harness/training/initial_contents.h"

#include <algorithm>
#include <boost/random/normal_distribution.hpp>
#include <functional>
#include <random>
#include <span>
#include <string>

#include "harness/base/error.h"

namespace headroom {
namespace {

// The value's name selects its own stream of the seed, so that adding a layer does not change the
// initial weights of the others.
std::mt19937_64 stream_of(std::uint64_t seed, const std::string& name) {
  std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(seed),
                                      static_cast<std::uint32_t>(seed >> 32)};
  words.insert(words.end(), name.begin(), name.end());
  std::seed_seq sequence(words.begin(), words.end());
  return std::mt19937_64(sequence);
}

// Each chunk of the numbers has a generator of its own, whose seed comes from the stream: threads
// share the work, and the numbers do not depend on how many there are.
void fill_normal(std::span<float> numbers, double deviation, std::mt19937_64 stream) {
  constexpr std::size_t kChunk = 65536;
  std::vector<std::uint64_t> seeds((numbers.size() + kChunk - 1) / kChunk);
  std::generate(seeds.begin(), seeds.end(), std::ref(stream));
#pragma omp parallel for schedule(static)
  for (std::size_t chunk = 0; chunk < seeds.size(); ++chunk) {
    std::mt19937_64 random(seeds[chunk]);
    boost::random::normal_distribution<float> normal(0, static_cast<float>(deviation));
    const std::size_t begin = kChunk * chunk;
    for (float& number : numbers.subspan(begin, std::min(kChunk, numbers.size() - begin)))
      number = normal(random);
  }
}

}  // namespace

std::vector<std::byte> initial_contents(const Value& value, std::uint64_t seed) {
  std::vector<std::byte> contents(static_cast<Bytes>(element_count(value.shape)) *
                                  size_of(value.dtype));
  const double parameter = value.initializer.parameter;
  if (parameter == 0) return contents;
  if (value.dtype != DType::f32)
    throw Error("only f32 values are initialised with numbers, '" + value.name + "' is not");
  const std::span<float> numbers(reinterpret_cast<float*>(contents.data()),
                                 contents.size() / sizeof(float));
  if (value.initializer.fill == Fill::normal)
    fill_normal(numbers, parameter, stream_of(seed, value.name));
  else
    std::ranges::fill(numbers, static_cast<float>(parameter));
  return contents;
}

}  // namespace headroom
