#include "harness/device/cuda/module/kernels/choose_algorithm.h"

namespace headroom::cuda {
namespace {

// An algorithm ranked as `standard` runs with the instructions that were requested.
bool computes_as_asked(Instructions instructions, Arithmetic arithmetic) {
  switch (instructions) {
    case Instructions::standard:
    case Instructions::fma:
      return true;
    case Instructions::tensor:
      return arithmetic != Arithmetic::f32;
    case Instructions::tensor_converting:  // f32 to 16 bits
      return false;
  }
  return false;
}

}  // namespace

Instructions instructions_for(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return Instructions::fma;
    case Arithmetic::tf32:
      return Instructions::standard;
    case Arithmetic::sixteen_bits:
      return Instructions::tensor;
  }
  return Instructions::fma;
}

std::optional<AlgorithmChoice> choose_algorithm(
    std::span<const RankedAlgorithm> ranked, Arithmetic arithmetic, std::optional<Bytes> limit,
    const std::function<std::optional<Bytes>(std::size_t)>& workspace_of) {
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const RankedAlgorithm& one = ranked[i];
    if (!one.runs || !one.deterministic || !computes_as_asked(one.instructions, arithmetic))
      continue;
    const std::optional<Bytes> workspace = workspace_of(i);
    if (workspace && (!limit || *workspace <= *limit)) return AlgorithmChoice{i, *workspace};
  }
  return std::nullopt;
}

}  // namespace headroom::cuda
