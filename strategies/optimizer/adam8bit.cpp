// Adam with states of 8 bits (Dettmers et al. 2022, "8-bit Optimizers via Block-wise
// Quantization"): both moments are kept as one byte a number, in blocks of 256 that share a scale,
// the largest magnitude among them. A block is widened to fp32, updated, used and quantised again
// within one op, so no wider copy of a state is ever in memory. Costs a rounding per step and
// state.
//
// Weights of fewer than min_8bit_size elements keep fp32 states, as in bitsandbytes (4096 there
// too): they hardly matter for memory and suffer most. Embeddings count like any other weight; for
// training them stably the paper adds a normalisation behind them, which would be another network.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/adam_update.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

constexpr std::int64_t kBlock = 256;

Program apply_adam8bit(Program program, const Spec& spec) {
  const std::int64_t smallest = spec.integer("min_8bit_size", 4096);
  if (smallest < 0)
    throw InputError(fmt::format("{}: min_8bit_size must not be negative", spec.to_string()));
  const Attributes attributes = optimizer::adam_attributes(spec);
  Attributes with_block = attributes;
  with_block["block"] = kBlock;
  const auto update = [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
    const Value trained = builder.program().value(weight);
    const std::int64_t elements = element_count(trained.shape);
    if (elements < smallest) return optimizer::emit_adam(builder, weight, gradient, attributes);
    const ValueId steps = optimizer::count_steps(builder);
    std::vector<ValueId> states;
    for (const char* moment : {".mean", ".square"}) {
      const std::string name = trained.name + moment;
      states.push_back(optimizer::add_state(builder, name + ".codes", {elements}, DType::u8));
      states.push_back(
          optimizer::add_state(builder, name + ".scales", {(elements + kBlock - 1) / kBlock}));
    }
    builder.emit("adam8bit", trained.name + ".update",
                 {weight, gradient, states[0], states[1], states[2], states[3], steps}, with_block,
                 {weight, states[0], states[1], states[2], states[3]});
  };
  return optimizer::with_step(std::move(program), spec, update);
}

Reason why_not_8bit(const Spec& spec, const Program& before, const Program& after) {
  if (Reason why = optimizer::why_not_engaged(spec, before, after)) return why;
  if (std::any_of(after.ops.begin(), after.ops.end(),
                  [](const Op& op) { return op.kind == "adam8bit"; }))
    return std::nullopt;
  return fmt::format(
      "optimizer={}: no weight of '{}' has the {} elements from which on states are "
      "kept in 8 bits; lower min_8bit_size",
      spec.to_string(), before.name, spec.integer("min_8bit_size", 4096));
}

const bool adam8bit_is_registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "adam8bit",
     .summary = "Adam with both states in 8 bits, quantised in blocks of 256. Weights with fewer "
                "than min_8bit_size elements keep fp32 states",
     .parameters = optimizer::parameters(
         {"beta1", "beta2", "epsilon", "learning_rate", "min_8bit_size", "weight_decay"}),
     .examples = {"adam8bit(min_8bit_size=1000)", "adam8bit(min_8bit_size=0)"},
     .apply = apply_adam8bit,
     .refuses = optimizer::refusals(),
     .why_not_engaged = why_not_8bit,
     .breaks = "both moments are rounded to 8 bits after every step"});

}  // namespace
}  // namespace headroom
