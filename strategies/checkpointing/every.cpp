// Checkpoints between segments of n modules: the outputs of a segment are kept, everything else is
// recomputed from them when the backward pass reaches the segment. The last segment keeps
// everything, since its backward pass comes next, as in torch.utils.checkpoint_sequential (PyTorch
// documentation: "All segments except the last"). Costs up to one more forward pass. With keep=host
// the checkpoints are kept in host memory (segments.h).
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/segments.h"

namespace headroom {
namespace {

Program apply_every(Program program, const Spec& spec) {
  const std::int64_t n = spec.integer("n", 1);
  if (n < 1) throw InputError(fmt::format("{}: n must be at least 1", spec.to_string()));
  return checkpointing::recompute_segments(std::move(program), static_cast<std::size_t>(n), spec);
}

const bool every_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "every",
     .summary = "Keeps the values between segments of n modules and recomputes the rest. Saves the "
                "activations inside segments; costs up to one more forward pass. keep=host keeps "
                "these values in host memory and copies them back prefetch= ops ahead, at the cost "
                "of two copies",
     .parameters = {"keep", "n", "prefetch"},
     .examples = {"every(n=1)", "every(n=2)", "every(keep=host,n=1)", "every(keep=host,n=2)"},
     .apply = apply_every,
     .why_not_engaged = checkpointing::why_segments_not_engaged});

}  // namespace
}  // namespace headroom
