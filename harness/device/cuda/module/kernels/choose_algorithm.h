// Which of the algorithms that cuDNN ranks for a convolution is taken. Plain numbers, so that the
// choice can be tested without the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "harness/base/units.h"

namespace headroom::cuda {

// In what products of a convolution's operands are computed; sums are f32 in any case.
enum class Arithmetic : std::uint8_t { f32, tf32, sixteen_bits };

// cuDNN's math types: which instructions an algorithm may use.
enum class Instructions : std::uint8_t { standard, tensor, tensor_converting, fma };

// What cuDNN is asked for. `standard` lets f32 become TF32.
Instructions instructions_for(Arithmetic arithmetic);

struct RankedAlgorithm {
  bool runs;  // for these shapes, by what the ranking says
  bool deterministic;
  Instructions instructions;
};

struct AlgorithmChoice {
  std::size_t index;
  Bytes workspace;
};

// The first that runs, gives the same bits every time, computes as asked and takes no more
// workspace than `limit`. `workspace_of` is asked of one after the other, the chosen one last;
// empty where the library refuses an algorithm that it has ranked.
std::optional<AlgorithmChoice> choose_algorithm(
    std::span<const RankedAlgorithm> ranked, Arithmetic arithmetic, std::optional<Bytes> limit,
    const std::function<std::optional<Bytes>(std::size_t)>& workspace_of);

}  // namespace headroom::cuda
