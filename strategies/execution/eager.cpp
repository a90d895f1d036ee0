// Eager execution as in a Python training loop: reference counting frees an op's result after its
// last use, but values that the loop holds in variables stay. The batch, the network's output and
// the loss are variables until the next step assigns them; a parameter's gradient is its attribute
// until the next step sets it to none (torch.optim.Optimizer.zero_grad, set_to_none=True). They are
// held until the end of the step; references that live on into the next step are not modelled.
// Without this strategy (last_use) every value is freed after its last use, as in a graph.
#include <algorithm>
#include <string>
#include <vector>

#include "harness/program/pass.h"

namespace headroom {
namespace {

ValueId original_of(const Program& program, ValueId id) {
  for (const Op& op : program.ops)
    if (op.kind == "reorder" && op.outputs.front() == id) return op.inputs.front();
  return id;
}

// Collects the values from which losses are computed. Follows sums of losses to their parts, and
// copies in another layout to the value that the loop holds.
void collect_outputs(const Program& program, ValueId loss, std::vector<ValueId>& held) {
  for (const Op& op : program.ops) {
    if (std::find(op.outputs.begin(), op.outputs.end(), loss) == op.outputs.end()) continue;
    if (op.kind == "add") {
      for (const ValueId part : op.inputs) collect_outputs(program, part, held);
    } else {
      held.push_back(original_of(program, op.inputs.front()));
    }
    return;
  }
}

Program hold_until_the_end(Program program, const Spec&) {
  std::vector<ValueId> held = program.inputs;
  collect_outputs(program, program.loss, held);
  for (const auto& [weight, gradient] : program.gradients) held.push_back(gradient);
  std::erase_if(held, [&](ValueId id) { return program.value(id).persistent; });
  ProgramBuilder builder(program, Phase::update);
  builder.emit("hold", program.name + ".end", held);
  return program;
}

const bool eager_is_registered = Registry<ExecutionStrategy>::instance().add(
    {.name = "eager",
     .summary = "The batch, the output, the loss and all gradients live to the end of the step, as "
                "the variables of a training loop do",
     .parameters = {},
     .examples = {"eager"},
     .apply = hold_until_the_end});

}  // namespace
}  // namespace headroom
