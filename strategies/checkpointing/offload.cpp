// Offloads the values kept for the backward pass to host memory after their last use in the forward
// pass, and copies them back before their first use in the backward pass. Nothing is recomputed;
// the cost is two copies of each value and as many bytes on the host as are saved on the device.
// After Rhu et al. 2016, "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient
// Neural Network Design"; PyTorch's torch.autograd.graph.save_on_cpu is this without prefetch.
//   prefetch=1  number of ops between the copy back and the first op that reads the value: more ops
//               hide the copy on a device that copies while it computes, but take memory for longer
//   share=1     share of the bytes kept for the backward pass that is offloaded: those made first,
//               which are needed last
// Values that would be back before the backward pass begins, those made last, stay on the device.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/offload.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/held.h"
#include "strategies/checkpointing/journeys.h"

namespace headroom {
namespace {

struct Options {
  std::size_t prefetch;
  double share;
};

Options read_options(const Spec& spec) {
  const double share = spec.number("share", 1);
  if (!(share > 0 && share <= 1))
    throw InputError(fmt::format("{}: share must be above 0 and at most 1", spec.to_string()));
  return {.prefetch = checkpointing::prefetch_of(spec), .share = share};
}

// The journeys, within the first share of bytes, that are away when the backward pass begins.
std::vector<checkpointing::Journey> chosen(const Program& program, const Options& options) {
  using checkpointing::Journey;
  const std::vector<Journey> all = checkpointing::journeys(program, options.prefetch);
  double kept = 0;
  for (const Journey& one : all)
    kept += static_cast<double>(checkpointing::plain_bytes(program.value(one.value)));
  double taken = 0;
  std::vector<Journey> result;
  for (const Journey& one : all) {
    if (taken >= options.share * kept) break;
    taken += static_cast<double>(checkpointing::plain_bytes(program.value(one.value)));
    if (checkpointing::is_worth_it(one)) result.push_back(one);
  }
  return result;
}

Program apply_offload(Program program, const Spec& spec) {
  const auto journeys = chosen(program, read_options(spec));
  return checkpointing::take(std::move(program), journeys);
}

Reason why_not_offloaded(const Spec& spec, const Program& before, const Program& after) {
  if (std::any_of(after.ops.begin(), after.ops.end(), is_transfer)) return std::nullopt;
  return fmt::format("checkpointing={}: no value of '{}' leaves the device", spec.to_string(),
                     before.name);
}

const bool offload_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "offload",
     .summary = "Copies what the backward pass will read to host memory and back, prefetch= ops "
                "ahead; share= selects a part of the bytes. Saves them on the device and takes as "
                "many on the host",
     .parameters = {"prefetch", "share"},
     .examples = {"offload", "offload(prefetch=20)", "offload(share=0.5)"},
     .apply = apply_offload,
     .why_not_engaged = why_not_offloaded});

}  // namespace
}  // namespace headroom
