// Chen, Xu, Zhang and Guestrin 2016 ("Training Deep Nets with Sublinear Memory Cost", section 4.1):
// n modules in segments of sqrt(n), so that both the checkpoints and the values within one segment
// take O(sqrt(n)) for n equal modules.
#include <cmath>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/segments.h"

namespace headroom {
namespace {

Program apply_sqrt(Program program, const Spec& spec) {
  const auto units = static_cast<double>(checkpointing::units_of(program).size());
  const auto length = static_cast<std::size_t>(std::ceil(std::sqrt(units)));
  return checkpointing::recompute_segments(std::move(program), length, spec);
}

const bool sqrt_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "sqrt",
     .summary = "Divides the modules into about sqrt(modules) segments and recomputes what is "
                "inside. Activations grow as the root of the depth; costs up to one more forward "
                "pass. keep=host keeps the values between segments in host memory and copies them "
                "back prefetch= ops ahead, at the cost of two copies",
     .parameters = {"keep", "prefetch"},
     .examples = {"sqrt", "sqrt(keep=host)"},
     .apply = apply_sqrt,
     .why_not_engaged = checkpointing::why_segments_not_engaged});

}  // namespace
}  // namespace headroom
