#include "strategies/optimizer/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/program/advance.h"

namespace headroom::optimizer {
namespace {

// Whether the parameter has the second of two allowed values.
bool is_second(const Spec& spec, const char* key, const char* first, const char* second) {
  const std::string value = spec.text(key, first);
  if (value != first && value != second)
    throw InputError(fmt::format("{}: {} '{}' does not exist; take {} or {}", spec.to_string(), key,
                                 value, first, second));
  return value == second;
}

bool in_backward(const Spec& spec) {
  return is_second(spec, "step", "after_backward", "in_backward");
}
bool zeroed(const Spec& spec) { return is_second(spec, "gradients", "none", "zeroed"); }

// Copies each gradient, as soon as it is made, into a buffer that lives across steps.
Program keep_gradients(Program program) {
  ProgramBuilder builder(program, Phase::backward);
  for (auto& [weight, gradient] : program.gradients) {
    const Value trained = program.value(weight);
    const ValueId kept = builder.persistent(trained.name + ".gradient", trained.shape,
                                            Role::gradient, {Fill::constant, 0.0});
    builder.emit("accumulate", trained.name + ".keep_gradient", {kept, gradient},
                 {{"scale", 1.0}, {"start", std::int64_t{1}}}, {kept});
    gradient = kept;
  }
  return advance(std::move(program), [](const Op& op) { return op.kind == "accumulate"; });
}

void clip(ProgramBuilder& builder, double largest_norm) {
  std::vector<ValueId> gradients;
  for (const auto& [weight, gradient] : builder.program().gradients) gradients.push_back(gradient);
  const ValueId factor = builder.emit_one("clip_factor", builder.program().name + ".clip",
                                          gradients, {{"largest_norm", largest_norm}});
  for (const ValueId gradient : std::set<ValueId>(gradients.begin(), gradients.end()))
    builder.emit("scale_gradient", builder.program().value(gradient).name + ".clip",
                 {gradient, factor}, {}, {gradient});
}

}  // namespace

std::vector<std::string> parameters(std::vector<std::string> own) {
  own.insert(own.end(), {"clip_norm", "gradients", "step"});
  std::sort(own.begin(), own.end());
  return own;
}

Program with_step(Program program, const Spec& spec, const Update& update,
                  const UpdateTogether& together) {
  const Loop loop = loop_of(spec);
  const double largest_norm = positive(spec, "clip_norm", 1);
  if (in_backward(spec) && spec.has("clip_norm"))
    throw NotSupported(
        fmt::format("{}: the norm of all gradients is known only after the last one, when weights "
                    "that change in "
                    "the backward pass have changed already",
                    spec.to_string()));
  if (in_backward(spec) && zeroed(spec))
    throw NotSupported(
        fmt::format("{}: weights that change in the backward pass free their gradients there",
                    spec.to_string()));
  if (in_backward(spec) && loop != Loop::per_tensor)
    throw NotSupported(
        fmt::format("{}: an op that changes all weights waits for the last gradient, when weights "
                    "that change in the backward pass have changed already",
                    spec.to_string()));
  if (zeroed(spec)) program = keep_gradients(std::move(program));
  const auto gradients = program.gradients;
  ProgramBuilder builder(program, Phase::update);
  if (spec.has("clip_norm")) clip(builder, largest_norm);
  if (loop == Loop::per_tensor)
    for (const auto& [weight, gradient] : gradients) update(builder, weight, gradient);
  else if (!gradients.empty())
    together(builder, gradients, loop);
  if (!in_backward(spec)) return program;
  return advance(std::move(program), [](const Op& op) { return op.phase == Phase::update; });
}

ValueId add_state(ProgramBuilder& builder, const std::string& name, const Shape& shape,
                  DType dtype) {
  const ValueId state =
      builder.persistent(name, shape, Role::optimizer_state, {Fill::constant, 0.0});
  builder.program().values[state].dtype = dtype;
  return state;
}

ValueId count_steps(ProgramBuilder& builder) {
  const std::string name = builder.program().name + ".steps";
  if (const ValueId known = builder.program().find(name); known != kNoValue) return known;
  const ValueId steps = add_state(builder, name, {1});
  builder.emit("count_step", name + ".count", {steps}, {}, {steps});
  return steps;
}

double positive(const Spec& spec, const std::string& key, double otherwise) {
  const double value = spec.number(key, otherwise);
  if (!(value > 0)) throw InputError(fmt::format("{}: {} must be positive", spec.to_string(), key));
  return value;
}

std::vector<Refusal> refusals() {
  return {
      {"accumulation", "micro_batches",
       "a weight must not change before the gradients of all micro-batches are summed",
       in_backward},
      {"accumulation", "micro_batches", "the sums of gradients are kept across steps anyway",
       zeroed},
      {"precision", "fp16",
       "whether gradients overflowed, and the step is skipped, is known after the last of them",
       in_backward},
      {"execution", "eager",
       "eager execution is modelled with gradients that live to the end of the step", in_backward}};
}

Reason why_not_engaged(const Spec& spec, const Program& before, const Program& after) {
  if (after.ops.size() == before.ops.size())
    return fmt::format("optimizer={}: '{}' has no weight to change", spec.to_string(), before.name);
  const auto is = [](Phase phase) { return [phase](const Op& op) { return op.phase == phase; }; };
  const auto first_update = std::find_if(after.ops.begin(), after.ops.end(), is(Phase::update));
  if (in_backward(spec) && std::none_of(first_update, after.ops.end(), is(Phase::backward)))
    return fmt::format("optimizer={}: no weight of '{}' changes before the backward pass ends",
                       spec.to_string(), before.name);
  return why_not_together(spec, after);
}

}  // namespace headroom::optimizer
