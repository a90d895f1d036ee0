// Checkpoints between segments of n modules: what leaves a segment is kept, everything else is
// computed again from there when the backward pass comes to the segment. The last segment keeps
// all it makes, since its backward pass is next: so does torch.utils.checkpoint_sequential
// (PyTorch documentation: "All segments except the last"). Costs up to one more forward pass.
// With keep=host the checkpoints wait in memory of the host (segments.h).
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
