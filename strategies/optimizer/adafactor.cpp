// Adafactor (Shazeer and Stern 2018, "Adafactor: Adaptive Learning Rates with Sublinear Memory
// Cost"). It keeps only the row and column means of a matrix's squared gradients, and no mean of
// the gradients, so n·m weights need n + m numbers, where Adam needs 2·n·m. Vectors (biases,
// normalisations) keep the square of each element.
//
// Weights of more than two dimensions count as a matrix of their first dimension by all others: a
// convolution as its output channels by the kernels that make them. The paper has matrices only;
// T5's code takes the last two dimensions, which for a 3x3 kernel would be 3 + 3 numbers for 9.
// No momentum (the paper's beta1 = 0): it would cost a number per weight again.
//
// Without learning_rate the steps are relative to the weights, max(epsilon2, rms(w)) times
// min(0.01, 1/sqrt(t)) (algorithm 5 of the paper, and its defaults); with it they are absolute
// (algorithm 4). The kernel computes each update where it is applied, without the temporary copy of
// the weight's size that implementations with tensor operations need.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

Program apply_adafactor(Program program, const Spec& spec) {
  const Attributes attributes = {
      {"clip_threshold", optimizer::positive(spec, "clip_threshold", 1)},
      {"decay_rate", optimizer::positive(spec, "decay_rate", 0.8)},
      {"epsilon1", optimizer::positive(spec, "epsilon1", 1e-30)},
      {"epsilon2", optimizer::positive(spec, "epsilon2", 1e-3)},
      {"learning_rate", optimizer::positive(spec, "learning_rate", 1e-2)},
      {"relative", std::int64_t{spec.has("learning_rate") ? 0 : 1}}};
  const auto update = [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
    const ValueId steps = optimizer::count_steps(builder);
    const Value trained = builder.program().value(weight);
    std::vector<ValueId> squares;
    const auto add_squares = [&](const char* suffix, const Shape& shape) {
      squares.push_back(optimizer::add_state(builder, trained.name + suffix, shape));
    };
    if (trained.shape.size() < 2) {
      add_squares(".square", trained.shape);
    } else {
      const std::int64_t rows = trained.shape[0];
      add_squares(".row_square", {rows});
      add_squares(".column_square", {element_count(trained.shape) / rows});
    }
    std::vector<ValueId> inputs = {weight, gradient};
    inputs.insert(inputs.end(), squares.begin(), squares.end());
    inputs.push_back(steps);
    std::vector<ValueId> mutates = {weight};
    mutates.insert(mutates.end(), squares.begin(), squares.end());
    builder.emit("adafactor", trained.name + ".update", inputs, attributes, mutates);
  };
  return optimizer::with_step(std::move(program), spec, update);
}

Reason why_not_factored(const Spec& spec, const Program& before, const Program& after) {
  if (Reason why = optimizer::why_not_engaged(spec, before, after)) return why;
  const bool any = std::any_of(after.gradients.begin(), after.gradients.end(), [&](auto& trained) {
    return after.value(trained.first).shape.size() > 1;
  });
  if (any) return std::nullopt;
  return fmt::format("optimizer={}: '{}' trains vectors only, whose squares have no factors",
                     spec.to_string(), before.name);
}

const bool adafactor_is_registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "adafactor",
     .summary = "Keeps squared gradients as means of rows and columns, without momentum: n + m "
                "fp32 numbers for n x m weights",
     .parameters = optimizer::parameters(
         {"clip_threshold", "decay_rate", "epsilon1", "epsilon2", "learning_rate"}),
     .examples = {"adafactor", "adafactor(learning_rate=0.001)"},
     .apply = apply_adafactor,
     .refuses = optimizer::refusals(),
     .why_not_engaged = why_not_factored,
     .breaks = "the update follows a rule of its own, without momentum"});

}  // namespace
}  // namespace headroom
