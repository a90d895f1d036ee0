// Magnitude pruning during training: the share of weights with the smallest magnitudes is set to
// zero, along a cubic schedule (Zhu and Gupta 2017, "To prune, or not to prune"). Memory goes up,
// not down: each weight gets a mask of its own size and type, as in TensorFlow's model optimization
// toolkit (pruning_wrapper.py: a variable `mask` beside every kernel), and zeros take as many bytes
// as other numbers. With copy=on the forward pass uses a masked copy that lives until the backward
// pass, as in PyTorch's torch.nn.utils.prune (weight_orig, weight_mask and weight). Weights of two
// and more dimensions are pruned: kernels and embeddings, but not biases or normalisations.
// Choosing the threshold takes scratch memory of the weight's size in every step, also in steps
// that do not prune.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/program/pass.h"
#include "strategies/pruning/masks.h"

namespace headroom {
namespace {

void check_schedule(const Spec& spec) {
  for (const char* share : {"initial", "sparsity"})
    if (const double value = spec.number(share, 0); value < 0 || value >= 1)
      throw InputError(
          fmt::format("{}: {} is the share of weights that become zero, from 0 to "
                      "below 1",
                      spec.to_string(), share));
  const std::int64_t begin = spec.integer("begin", 1);
  if (begin < 1 || spec.integer("end", begin) < begin || spec.integer("every", 1) < 1)
    throw InputError(
        fmt::format("{}: steps count from 1; end must not lie before begin, and every "
                    "must be at least 1",
                    spec.to_string()));
}

// Makes masked copies before everything else, on which the forward pass runs.
Program apply_copies(Program program, const Spec& spec) {
  check_schedule(spec);
  if (!spec.flag("copy", false)) return program;
  const std::size_t built = program.ops.size();
  const std::size_t values = program.values.size();
  std::vector<ValueId> stands_for(values);
  ProgramBuilder builder(program, Phase::forward);
  for (ValueId id = 0; id < values; ++id) {
    stands_for[id] = id;
    if (!pruning::is_prunable(program.value(id))) continue;
    const ValueId mask = pruning::mask_of(builder, id);
    stands_for[id] = builder.emit_one("masked", program.value(id).name + ".masked", {id, mask});
  }
  for (std::size_t i = 0; i < built; ++i)
    for (ValueId& id : program.ops[i].inputs)
      if (id != kNoValue && id < values) id = stands_for[id];
  std::rotate(program.ops.begin(), program.ops.begin() + static_cast<std::ptrdiff_t>(built),
              program.ops.end());
  return program;
}

Program add_masking(Program program, const Spec& spec) {
  const std::int64_t begin = spec.integer("begin", 1);
  const Attributes schedule = {{"initial", spec.number("initial", 0.0)},
                               {"final", spec.number("sparsity", 0.8)},
                               {"begin", begin},
                               {"end", spec.integer("end", begin)},
                               {"every", spec.integer("every", 1)}};
  ProgramBuilder builder(program, Phase::update);
  const ValueId steps = pruning::count_steps(builder);
  const auto trained = program.gradients;
  for (const auto& [weight, gradient] : trained) {
    const std::string name = program.value(weight).name;
    if (!pruning::is_prunable(program.value(weight))) continue;
    const ValueId mask = pruning::mask_of(builder, weight);
    builder.emit("magnitude_mask", name + ".mask.update", {weight, mask, steps}, schedule, {mask});
    if (!spec.flag("copy", false))
      builder.emit("apply_mask", name + ".mask.apply", {weight, mask}, {}, {weight});
  }
  return program;
}

const bool magnitude_is_registered = Registry<PruningStrategy>::instance().add(
    {.name = "magnitude",
     .summary = "Zeroes the smallest weights along a schedule. Each pruned weight has a mask of "
                "its own size",
     .parameters = {"begin", "copy", "end", "every", "initial", "sparsity"},
     .examples = {"magnitude(sparsity=0.8)", "magnitude(sparsity=0.5,copy=on)"},
     .apply = apply_copies,
     .finish = add_masking,
     .breaks = "weights are forced to zero"});

}  // namespace
}  // namespace headroom
