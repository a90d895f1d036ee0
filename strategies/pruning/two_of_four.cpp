// Semi-structured pruning: of each four neighbouring weights the two of smallest magnitude become
// zero (Mishra et al. 2021, "Accelerating Sparse Deep Neural Networks"), the pattern that sparse
// tensor cores multiply in half the time. Groups run along the second dimension, the one that a
// linear layer and a convolution sum over; weights whose second dimension is no multiple of four
// stay dense, as in the paper's tools. Masks are chosen in the step `begin` and hold from then on.
//
// Saves no memory here: weights stay dense, zeros take as many bytes as other numbers, and each
// weight gets a mask of its own size and type. Stored sparse, a group of four would be two numbers
// and two 2-bit indices: 8.5 bytes for 16 in fp32, 4.5 for 8 in 16 bits. The scenario
// export_weights stores weights in this form; nothing here multiplies them in it.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "harness/base/error.h"
#include "harness/program/pass.h"
#include "strategies/pruning/masks.h"

namespace headroom {
namespace {

bool has_groups(const Value& value) {
  return pruning::is_prunable(value) && value.shape[1] % 4 == 0;
}

Program check_groups(Program program, const Spec& spec) {
  if (spec.integer("begin", 1) < 1)
    throw InputError(
        fmt::format("{}: steps count from 1, so begin must be at least 1", spec.to_string()));
  if (std::none_of(program.values.begin(), program.values.end(), has_groups))
    throw NotSupported(
        fmt::format("pruning={}: no weight of '{}' has a second dimension that is a "
                    "multiple of four",
                    spec.to_string(), program.name));
  return program;
}

Program mask_two_of_four(Program program, const Spec& spec) {
  ProgramBuilder builder(program, Phase::update);
  const ValueId steps = pruning::count_steps(builder);
  const auto trained = program.gradients;
  for (const auto& [weight, gradient] : trained) {
    if (!has_groups(program.value(weight))) continue;
    const std::string name = program.value(weight).name;
    const ValueId mask = pruning::mask_of(builder, weight);
    builder.emit("two_of_four_mask", name + ".mask.update", {weight, mask, steps},
                 {{"begin", spec.integer("begin", 1)}}, {mask});
    builder.emit("apply_mask", name + ".mask.apply", {weight, mask}, {}, {weight});
  }
  return program;
}

const bool two_of_four_is_registered = Registry<PruningStrategy>::instance().add(
    {.name = "two_of_four",
     .summary = "Zeroes two of every four neighbouring weights. Weights stay dense and each gets a "
                "mask, so it saves no memory",
     .parameters = {"begin"},
     .examples = {"two_of_four"},
     .apply = check_groups,
     .finish = mask_two_of_four,
     .breaks = "half of the weights are forced to zero"});

}  // namespace
}  // namespace headroom
