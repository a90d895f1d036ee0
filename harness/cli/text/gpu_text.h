// The answer of headroom gpu, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/device/meta/cards.h"
#include "harness/virtual_gpu/outcome.h"

namespace headroom {

enum class GpuVerdict { fits, does_not_fit, over_budget, failed, not_supported, no_gpu_used };

// The result of one program on one card.
struct GpuAnswer {
  const Card* card = nullptr;
  Bytes memory = 0;   // available to the program: the card's without the context
  Bytes context = 0;  // reserved for the CUDA context
  std::optional<Bytes> budget;
  bool has_cudnn = false;  // whether the user's own cuDNN chose the workspaces
  int exit_status = 0;     // of the program, as a shell reports it
  virtual_gpu::Outcome outcome;
  std::string directory;  // of the record
};

GpuVerdict verdict_of(const GpuAnswer& answer);
// Returns several lines; the first is the answer.
std::string to_words(const GpuAnswer& answer);
nlohmann::ordered_json to_json(const GpuAnswer& answer);

}  // namespace headroom
