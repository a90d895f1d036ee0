// Reverse-mode differentiation: walks the forward ops backwards and applies each kind's rule for
// the gradients that are needed.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/program.h"

namespace headroom {
namespace {

// Gradients collected so far. The gradient of a value with several uses is summed as soon as each
// share arrives, so that at most one gradient per value is live.
class Gradients {
 public:
  explicit Gradients(ProgramBuilder& builder) : builder_(builder) {}

  void accumulate(ValueId value, ValueId share) {
    const auto [found, first] = sums_.try_emplace(value, share);
    if (first) return;
    const int count = ++additions_[value];
    const std::string suffix = count == 1 ? "" : fmt::format(".{}", count);
    found->second =
        builder_.emit_one("add", builder_.program().value(value).name + ".sum_gradients" + suffix,
                          {found->second, share});
  }

  ValueId of(ValueId value) const {
    const auto found = sums_.find(value);
    return found == sums_.end() ? kNoValue : found->second;
  }

 private:
  ProgramBuilder& builder_;
  std::map<ValueId, ValueId> sums_;
  std::map<ValueId, int> additions_;
};

// Whether each value depends on a weight.
std::vector<bool> depends_on_weight(const Program& program) {
  std::vector<bool> depends(program.values.size());
  for (ValueId id = 0; id < program.values.size(); ++id)
    depends[id] = program.value(id).persistent && program.value(id).role == Role::weight;
  for (const ValueId id : program.frozen) depends[id] = false;
  for (const Op& op : program.ops) {
    const bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
                                 [&](ValueId id) { return id != kNoValue && depends[id]; });
    for (const ValueId id : op.outputs) depends[id] = any;
  }
  return depends;
}

// Values whose gradient is 1: the loss, and if it is a sum, its summands.
void collect_roots(const Program& program, ValueId loss, std::set<ValueId>& roots) {
  if (loss == kNoValue)
    throw Error(fmt::format("program '{}' has no loss to differentiate", program.name));
  roots.insert(loss);
  const auto& ops = program.ops;
  const auto root = std::find_if(ops.begin(), ops.end(), [&](const Op& op) {
    return std::find(op.outputs.begin(), op.outputs.end(), loss) != op.outputs.end();
  });
  if (root == ops.end()) throw Error(fmt::format("no op of '{}' makes its loss", program.name));
  if (root->kind == "add") {
    for (const ValueId summand : root->inputs) collect_roots(program, summand, roots);
    return;
  }
  const auto& definition = Registry<OpDefinition>::instance().find(root->kind);
  if (!definition.makes_loss || root->outputs.front() != loss)
    throw Error(fmt::format("{} ({}): this kind's backward rule cannot start from the loss",
                            root->name, root->kind));
}

}  // namespace

Program differentiate(Program forward) {
  std::set<ValueId> roots;
  collect_roots(forward, forward.loss, roots);
  Program program = std::move(forward);
  const std::vector<bool> depends = depends_on_weight(program);
  const std::size_t forward_values = program.values.size();
  ProgramBuilder builder(program, Phase::backward);
  Gradients gradients(builder);

  for (std::size_t index = program.ops.size(); index-- > 0;) {
    const Op op = program.ops[index];  // a copy: rules append to program.ops
    if (op.kind == "add" && roots.contains(op.outputs[0])) continue;  // both summands get 1
    GradientContext context{builder, op, {}, {}};
    bool reached = false;
    for (const ValueId id : op.outputs) {
      context.d_outputs.push_back(gradients.of(id));
      reached = reached || roots.contains(id) || context.d_outputs.back() != kNoValue;
    }
    bool any_wanted = false;
    for (const ValueId id : op.inputs) {
      context.wanted.push_back(id != kNoValue && depends[id]);
      any_wanted = any_wanted || context.wanted.back();
    }
    if (!reached || !any_wanted) continue;
    const auto& definition = Registry<OpDefinition>::instance().find(op.kind);
    if (!definition.differentiate)
      throw Error(
          fmt::format("{} ({}): lies between a weight and the loss, but this kind has no "
                      "backward rule",
                      op.name, op.kind));
    const auto d_inputs = definition.differentiate(context);
    for (std::size_t i = 0; i < d_inputs.size(); ++i)
      if (context.wanted[i] && d_inputs[i] != kNoValue)
        gradients.accumulate(op.inputs[i], d_inputs[i]);
  }

  for (ValueId id = 0; id < forward_values; ++id) {
    const Value& value = program.value(id);
    if (!value.persistent || value.role != Role::weight || gradients.of(id) == kNoValue) continue;
    program.gradients.emplace_back(id, gradients.of(id));
  }
  return program;
}

}  // namespace headroom
