// Chooses one of the algorithms that cuDNN ranks for a convolution. Works on plain numbers, so that
// the choice can be tested without the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "harness/base/units.h"

namespace headroom::cuda {

// Element type in which the products of a convolution are computed; sums are always f32.
enum class Arithmetic : std::uint8_t { f32, tf32, sixteen_bits };

// cuDNN's math types: which instructions an algorithm may use.
enum class Instructions : std::uint8_t { standard, tensor, tensor_converting, fma };

// The math type to request from cuDNN. `standard` allows f32 to become TF32.
Instructions instructions_for(Arithmetic arithmetic);

struct RankedAlgorithm {
  bool runs;  // according to the ranking, for these shapes
  bool deterministic;
  Instructions instructions;
};

struct AlgorithmChoice {
  std::size_t index;
  Bytes workspace;
};

// Returns the first algorithm that runs, is deterministic, computes in the requested arithmetic and
// needs at most `limit` bytes of workspace. `workspace_of` is called for one algorithm after
// another, the chosen one last; it returns empty when the library refuses an algorithm that it has
// ranked.
std::optional<AlgorithmChoice> choose_algorithm(
    std::span<const RankedAlgorithm> ranked, Arithmetic arithmetic, std::optional<Bytes> limit,
    const std::function<std::optional<Bytes>(std::size_t)>& workspace_of);

}  // namespace headroom::cuda
