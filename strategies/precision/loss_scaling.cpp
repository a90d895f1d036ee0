#include "strategies/precision/loss_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/conditional.h"

namespace headroom::loss_scaling {
namespace {

constexpr double kGrowth = 2, kBackoff = 0.5;

bool is_dynamic(const Spec& spec) { return spec.text("loss_scale", "dynamic") == "dynamic"; }

double positive(const Spec& spec, const char* key, double otherwise) {
  const double value = spec.number(key, otherwise);
  if (!(value > 0)) throw InputError(fmt::format("{}: {} must be positive", spec.to_string(), key));
  return value;
}

double first_scale(const Spec& spec) {
  if (is_dynamic(spec)) return positive(spec, "initial_scale", 65536);
  if (spec.has("initial_scale") || spec.has("growth_interval"))
    throw InputError(
        fmt::format("{}: a constant loss scale neither starts nor grows; leave out "
                    "initial_scale and growth_interval, or use loss_scale=dynamic",
                    spec.to_string()));
  return positive(spec, "loss_scale", 1);
}

std::int64_t growth_interval(const Spec& spec) {
  const std::int64_t steps = spec.integer("growth_interval", 2000);
  if (steps < 1)
    throw InputError(fmt::format("{}: growth_interval must be positive", spec.to_string()));
  return steps;
}

ValueId kept_number(ProgramBuilder& builder, const std::string& suffix, double first) {
  const std::string name = builder.program().name + suffix;
  if (const ValueId known = builder.program().find(name); known != kNoValue) return known;
  return builder.persistent(name, {1}, Role::statistic, {Fill::constant, first});
}

ValueId scale_of(ProgramBuilder& builder, const Spec& spec) {
  return kept_number(builder, ".loss_scale", first_scale(spec));
}

// Returns the kinds of ops that begin backward passes: those that gradient rules of losses emit.
std::set<std::string> kinds_of_first_gradients(const Program& program) {
  std::set<std::string> kinds;
  for (const Op& op : program.ops)
    if (Registry<OpDefinition>::instance().find(op.kind).makes_loss)
      kinds.insert(op.kind + "_backward");
  return kinds;
}

// Whether the op changes weights, optimizer states or the count of steps, but not masks or
// statistics.
bool is_update(const Program& program, const Op& op) {
  return op.phase == Phase::update &&
         std::any_of(op.mutates.begin(), op.mutates.end(), [&](ValueId id) {
           const Role role = program.value(id).role;
           return role == Role::weight || role == Role::optimizer_state;
         });
}

}  // namespace

std::vector<std::string> parameters(std::vector<std::string> own) {
  own.insert(own.end(), {"growth_interval", "initial_scale", "loss_scale"});
  std::sort(own.begin(), own.end());
  return own;
}

Program scale_losses(Program program, const Spec& spec) {
  const auto kinds = kinds_of_first_gradients(program);
  const std::vector<Op> ops = std::exchange(program.ops, {});
  ProgramBuilder builder(program, Phase::backward);
  const ValueId scale = scale_of(builder, spec);
  for (const Op& op : ops) {
    program.ops.push_back(op);
    if (!kinds.contains(op.kind)) continue;
    const ValueId gradient = op.outputs[0];
    builder.emit("scale_gradient", op.name + ".scale", {gradient, scale}, {}, {gradient});
  }
  return program;
}

Program guard_update(Program program, const Spec& spec) {
  const std::vector<Op> ops = std::exchange(program.ops, {});
  const auto first_update =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.phase == Phase::update; });
  program.ops.assign(ops.begin(), first_update);
  ProgramBuilder builder(program, Phase::update);
  const std::string& name = program.name;
  const ValueId scale = scale_of(builder, spec);
  std::set<ValueId> gradients;
  for (const auto& [weight, gradient] : program.gradients) gradients.insert(gradient);
  std::vector<ValueId> checked = {scale};
  checked.insert(checked.end(), gradients.begin(), gradients.end());
  const auto found = builder.emit("check_gradients", name + ".check", checked);
  for (const ValueId gradient : gradients)
    builder.emit("scale_gradient", program.value(gradient).name + ".unscale", {gradient, found[1]},
                 {}, {gradient});
  for (auto op = first_update; op != ops.end(); ++op) {
    program.ops.push_back(*op);
    if (is_update(program, *op)) do_unless(program.ops.back(), found[0]);
  }
  const ValueId good_steps = kept_number(builder, ".loss_scale.good_steps", 0);
  const ValueId skipped = kept_number(builder, ".loss_scale.skipped", 0);
  builder.emit("adjust_loss_scale", name + ".loss_scale.adjust",
               {found[0], scale, good_steps, skipped},
               {{"growth", is_dynamic(spec) ? kGrowth : 1.0},
                {"backoff", is_dynamic(spec) ? kBackoff : 1.0},
                {"growth_interval", growth_interval(spec)}},
               {scale, good_steps, skipped});
  return program;
}

Reason why_not_guarded(const Program& lowered) {
  for (const Op& op : lowered.ops)
    if (is_update(lowered, op) && !is_conditional(op))
      return fmt::format("{} ({}) changes '{}' whether gradients overflowed or not", op.name,
                         op.kind, lowered.value(op.mutates.front()).name);
  return std::nullopt;
}

}  // namespace headroom::loss_scaling
