// Shared parts of the shape rules of all op kinds: checks whose errors name the operand at fault.
// For the files of this folder only.
#pragma once

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/op.h"
#include "harness/program/program.h"

namespace headroom::rules {

template <typename... Arguments>
void require(bool holds, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (!holds) throw Error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

struct Operand {
  std::string_view name;
  std::size_t rank;
  DType dtype = DType::f32;
};

// Checks number, ranks and element types of the operands.
inline void require_operands(std::span<const Value> inputs,
                             std::initializer_list<Operand> operands) {
  require(inputs.size() == operands.size(), "takes {} operands, not {}", operands.size(),
          inputs.size());
  for (std::size_t i = 0; const Operand& wanted : operands) {
    const Value& value = inputs[i++];
    require(value.shape.size() == wanted.rank && value.dtype == wanted.dtype,
            "{} must be {} with {} dimensions, but '{}' is {}{}", wanted.name,
            to_string(wanted.dtype), wanted.rank, value.name, to_string(value.dtype),
            to_string(value.shape));
  }
}

// The element type of the first operand, which all operands and results of a kind share unless its
// rule requires f32: parameters of normalisations, statistics and losses stay in f32. Throws for
// types that are not real numbers.
inline DType real_type(std::span<const Value> inputs) {
  require(!inputs.empty(), "takes operands, not none");
  const DType type = inputs[0].dtype;
  require(type == DType::f32 || type == DType::bf16 || type == DType::f16,
          "computes in f32, bf16 or f16, but '{}' is {}", inputs[0].name, to_string(type));
  return type;
}

inline void require_shape(const Value& value, std::string_view name, const Shape& wanted) {
  require(value.shape == wanted, "{} must have shape {}, but '{}' has {}", name, to_string(wanted),
          value.name, to_string(value.shape));
}

// A mutating kind must list the inputs it changes, because passes and liveness rely on the list.
inline void require_mutates(const Op& op, std::initializer_list<std::size_t> inputs) {
  std::vector<ValueId> wanted;
  for (const std::size_t i : inputs) wanted.push_back(op.inputs.at(i));
  require(op.mutates == wanted, "mutates {} of its inputs, which the op does not state",
          wanted.size());
}

inline Value made(Shape shape, Role role = Role::activation, DType dtype = DType::f32) {
  Value value;
  value.shape = std::move(shape);
  value.dtype = dtype;
  value.role = role;
  return value;
}

// For gradients computed by a kind that forward passes use too.
inline void set_role(ProgramBuilder& builder, ValueId id, Role role) {
  builder.program().values.at(id).role = role;
}

// Backward rules of kinds whose other outputs are by-products kept for the backward pass.
inline void require_gradient_of_first_output_only(const GradientContext& context) {
  for (std::size_t i = 1; i < context.d_outputs.size(); ++i)
    require(context.d_outputs[i] == kNoValue,
            "{} ({}): no gradient flows through '{}', yet the loss depends on it", context.op.name,
            context.op.kind, context.builder.program().value(context.op.outputs[i]).name);
}

// A kernel window sliding over H and W.
struct Window {
  std::array<std::int64_t, 2> kernel;
  std::vector<std::int64_t> strides;  // 2
  std::vector<std::int64_t> padding;  // 4: top, left, bottom, right
};

// Output height and width over an input of H×W.
inline std::array<std::int64_t, 2> slide(const Window& window, std::int64_t height,
                                         std::int64_t width) {
  require(window.strides.size() == 2 && window.strides[0] > 0 && window.strides[1] > 0,
          "strides must be two positive numbers");
  require(window.padding.size() == 4, "padding must be top, left, bottom, right");
  for (const std::int64_t side : window.padding) require(side >= 0, "padding must not be negative");
  const std::array<std::int64_t, 2> padded = {height + window.padding[0] + window.padding[2],
                                              width + window.padding[1] + window.padding[3]};
  for (std::size_t i = 0; i < 2; ++i)
    require(window.kernel[i] > 0 && padded[i] >= window.kernel[i],
            "the kernel {}x{} does not fit into the padded image {}x{}", window.kernel[0],
            window.kernel[1], padded[0], padded[1]);
  return {(padded[0] - window.kernel[0]) / window.strides[0] + 1,
          (padded[1] - window.kernel[1]) / window.strides[1] + 1};
}

}  // namespace headroom::rules
