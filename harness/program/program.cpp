#include "harness/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {
namespace {

std::vector<Value> operands(const Program& program, const std::vector<ValueId>& ids) {
  std::vector<Value> values;
  for (const ValueId id : ids) values.push_back(id == kNoValue ? Value{} : program.value(id));
  return values;
}

// Adds the value to the Program after checking that its size is within the limits.
ValueId add_value(Program& program, Value value) {
  try {
    element_count(value.shape);
  } catch (const InputError& error) {
    throw InputError(fmt::format("'{}' of '{}': {}", value.name, program.name, error.what()));
  }
  program.values.push_back(std::move(value));
  return static_cast<ValueId>(program.values.size() - 1);
}

}  // namespace

ValueId Program::find(std::string_view value_name) const {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const Value& value) { return value.name == value_name; });
  return found == values.end() ? kNoValue : static_cast<ValueId>(found - values.begin());
}

double total_flops(const Program& program) {
  double sum = 0;
  for (const Op& op : program.ops) {
    const auto& definition = Registry<OpDefinition>::instance().find(op.kind);
    if (!definition.flops) continue;
    sum += definition.flops(op, operands(program, op.inputs), operands(program, op.outputs));
  }
  return sum;
}

ProgramBuilder::ProgramBuilder(Program& program, Phase phase) : program_(program), phase_(phase) {}

ValueId ProgramBuilder::input(std::string name, Shape shape, DType dtype) {
  const ValueId id = add_value(
      program_,
      {.name = std::move(name), .shape = std::move(shape), .dtype = dtype, .role = Role::input});
  program_.inputs.push_back(id);
  return id;
}

ValueId ProgramBuilder::persistent(std::string name, Shape shape, Role role,
                                   Initializer initializer) {
  return add_value(program_, {.name = std::move(name),
                              .shape = std::move(shape),
                              .role = role,
                              .persistent = true,
                              .initializer = initializer});
}

std::vector<ValueId> ProgramBuilder::emit(std::string kind, std::string name,
                                          std::vector<ValueId> inputs, Attributes attributes,
                                          std::vector<ValueId> mutates) {
  Op op{.kind = std::move(kind),
        .name = std::move(name),
        .inputs = std::move(inputs),
        .mutates = std::move(mutates),
        .attributes = std::move(attributes),
        .phase = phase_};
  std::vector<Value> outputs;
  try {
    outputs =
        Registry<OpDefinition>::instance().find(op.kind).infer(op, operands(program_, op.inputs));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} ({}): {}", op.name, op.kind, error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("{} ({}): {}", op.name, op.kind, error.what()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].name = i == 0 ? op.name : fmt::format("{}:{}", op.name, i);
    op.outputs.push_back(add_value(program_, std::move(outputs[i])));
  }
  program_.ops.push_back(op);
  return op.outputs;
}

ValueId ProgramBuilder::emit_one(std::string kind, std::string name, std::vector<ValueId> inputs,
                                 Attributes attributes) {
  const auto outputs =
      emit(std::move(kind), std::move(name), std::move(inputs), std::move(attributes));
  if (outputs.size() != 1)
    throw Error(fmt::format("{} ({}): has {} outputs where one was expected",
                            program_.ops.back().name, program_.ops.back().kind, outputs.size()));
  return outputs.front();
}

}  // namespace headroom
