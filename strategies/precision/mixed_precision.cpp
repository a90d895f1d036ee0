#include "strategies/precision/mixed_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "harness/base/registry.h"

namespace headroom {
namespace {

// A kind of op that takes part, and the number of leading operands that are cast. The other
// operands keep their type: biases, parameters of normalisations, masks, keys.
struct Part {
  std::string_view kind;
  std::size_t operands;
};
// Always in 16 bits.
constexpr std::array kProducts = {Part{"batched_matmul", 2}, Part{"convolution", 2},
                                  Part{"linear", 2}, Part{"transposed_convolution", 2}};
// In 16 bits if an operand is; arithmetic inside an op is always f32. gather_rows is not included:
// its gradient adds rows one by one and would be rounded after each.
constexpr std::array kFollowers = {
    Part{"add", 2},        Part{"batch_norm", 1}, Part{"causal_softmax", 1},
    Part{"dropout", 1},    Part{"gelu", 1},       Part{"global_average_pool", 1},
    Part{"layer_norm", 1}, Part{"leaky_relu", 1}, Part{"masked_softmax", 1},
    Part{"max_pool", 1},   Part{"relu", 1},       Part{"sum_pool", 1},
    Part{"tanh", 1},       Part{"upsample", 1}};

template <std::size_t kCount>
std::size_t operands_of(const std::array<Part, kCount>& parts, std::string_view kind) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.kind == kind; });
  return found == parts.end() ? 0 : found->operands;
}

// A GPU's 8-bit products require rows and columns aligned to 16 bytes (cuBLAS documentation of
// cublasLtMatmul). Over forward and backward pass this applies to samples, inputs and outputs,
// which the shapes of the first two operands of each product contain.
constexpr std::int64_t kSide = 16;
bool fits_8_bits(std::string_view kind, const Value& first, const Value& second) {
  if (!kind.starts_with("linear")) return false;
  const auto fits = [](const Value& value) {
    return std::all_of(value.shape.begin(), value.shape.end(),
                       [](std::int64_t side) { return side % kSide == 0; });
  };
  return fits(first) && fits(second);
}

bool is_real(DType type) { return type == DType::f32 || type == DType::bf16 || type == DType::f16; }

class Rewriting {
 public:
  Rewriting(const Program& forward, DType reduced, WeightCasts casts, LinearLayers linear)
      : source_(forward),
        reduced_(reduced),
        casts_(casts),
        linear_(linear),
        builder_(rewritten_),
        ids_(forward.values.size(), kNoValue) {}

  Program run() {
    rewritten_.name = source_.name;
    rewritten_.phase = source_.phase;
    for (ValueId id = 0; id < source_.values.size(); ++id) {
      const Value& value = source_.value(id);
      if (!value.persistent && value.role != Role::input) continue;
      ids_[id] = static_cast<ValueId>(rewritten_.values.size());
      rewritten_.values.push_back(value);
    }
    for (const ValueId id : source_.inputs) rewritten_.inputs.push_back(ids_[id]);
    for (const Op& op : source_.ops) rewrite(op);
    for (const ValueId id : source_.results)
      rewritten_.results.push_back(in_type(ids_[id], DType::f32, rewritten_.value(ids_[id]).name));
    for (const ValueId id : source_.frozen) rewritten_.frozen.push_back(ids_[id]);
    if (source_.loss != kNoValue) rewritten_.loss = ids_[source_.loss];
    return std::move(rewritten_);
  }

 private:
  void rewrite(const Op& op) {
    builder_.set_phase(op.phase);
    std::vector<ValueId> inputs;
    for (const ValueId id : op.inputs) inputs.push_back(id == kNoValue ? kNoValue : ids_[id]);
    if (multiplies_8_bits(op, inputs)) {
      for (const std::size_t i : {0, 1}) {
        const auto [codes, scale] = quantised(inputs[i], fmt::format("{}.quantise{}", op.name, i));
        inputs[i] = codes;
        inputs.push_back(scale);
      }
    } else {
      const auto [type, operands] = type_of(op, inputs);
      for (std::size_t i = 0; i < operands; ++i)
        inputs[i] = in_type(inputs[i], type, fmt::format("{}.cast{}", op.name, i));
    }
    std::vector<ValueId> mutates;
    for (const ValueId id : op.mutates) mutates.push_back(ids_[id]);
    const auto outputs = builder_.emit(op.kind, op.name, inputs, op.attributes, mutates);
    for (std::size_t i = 0; i < outputs.size(); ++i) ids_[op.outputs[i]] = outputs[i];
  }

  bool multiplies_8_bits(const Op& op, const std::vector<ValueId>& inputs) const {
    return linear_ == LinearLayers::in_8_bits && op.kind == "linear" &&
           fits_8_bits(op.kind, rewritten_.value(inputs[0]), rewritten_.value(inputs[1]));
  }

  // Quantises a value directly from 16 or 32 bits to codes and scale, with one rounding instead of
  // two.
  std::pair<ValueId, ValueId> quantised(ValueId id, const std::string& name) {
    const auto found = quantised_.find(id);
    if (found != quantised_.end()) return found->second;
    const auto made =
        builder_.emit("quantise", name, {id}, {{"to", static_cast<std::int64_t>(DType::f8e4m3)}});
    return quantised_[id] = {made[0], made[1]};
  }

  // The type an op computes in and how many of its operands must have it.
  std::pair<DType, std::size_t> type_of(const Op& op, const std::vector<ValueId>& inputs) const {
    if (const std::size_t operands = operands_of(kProducts, op.kind); operands > 0)
      return {reduced_, operands};
    if (const std::size_t operands = operands_of(kFollowers, op.kind); operands > 0) {
      const bool any =
          std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(operands),
                      [&](ValueId id) { return rewritten_.value(id).dtype == reduced_; });
      return {any ? reduced_ : DType::f32, operands};
    }
    return {DType::f32, inputs.size()};
  }

  ValueId in_type(ValueId id, DType type, const std::string& name) {
    if (id == kNoValue) return id;
    const Value value = rewritten_.value(id);
    if (!is_real(value.dtype) || value.dtype == type) return id;
    const bool shared = !value.persistent || casts_ == WeightCasts::shared;
    if (const auto found = made_.find({id, type}); shared && found != made_.end())
      return found->second;
    return made_[{id, type}] =
               builder_.emit_one("cast", name, {id}, {{"to", static_cast<std::int64_t>(type)}});
  }

  const Program& source_;
  DType reduced_;
  WeightCasts casts_;
  LinearLayers linear_;
  Program rewritten_;
  ProgramBuilder builder_;
  std::vector<ValueId> ids_;  // of rewritten_, by id in source_
  std::map<std::pair<ValueId, DType>, ValueId> made_;
  std::map<ValueId, std::pair<ValueId, ValueId>> quantised_;
};

}  // namespace

Program in_mixed_precision(const Program& forward, DType reduced, WeightCasts casts,
                           LinearLayers linear) {
  return Rewriting(forward, reduced, casts, linear).run();
}

bool keeps_casts(const Spec& spec) { return spec.flag("cast_cache", true); }

Program cast_again_in_backward(Program program) {
  std::map<ValueId, Op> copies;  // by value made by a cast of a weight
  const std::vector<Op> ops = std::exchange(program.ops, {});
  ProgramBuilder builder(program, Phase::backward);
  for (Op op : ops) {
    if (op.kind == "cast" && program.value(op.inputs[0]).persistent) copies[op.outputs[0]] = op;
    for (ValueId& id : op.inputs)
      if (const auto copy = copies.find(id); op.phase == Phase::backward && copy != copies.end())
        id = builder.emit_one("cast", op.name + ".cast", copy->second.inputs,
                              copy->second.attributes);
    program.ops.push_back(std::move(op));
  }
  return program;
}

Reason why_not_mixed_precision(const Program& lowered, DType reduced, LinearLayers linear) {
  int products = 0;
  for (const Op& op : lowered.ops) {
    if (!Registry<OpDefinition>::instance().find(op.kind).flops) continue;
    const Value& x = lowered.value(op.inputs[0]);
    const bool meant =
        linear == LinearLayers::in_8_bits && fits_8_bits(op.kind, x, lowered.value(op.inputs[1]));
    if (meant ? !is_f8(x.dtype) : x.dtype != reduced)
      return fmt::format("{} ({}) multiplies in {}, not in {}", op.name, op.kind,
                         to_string(x.dtype), meant ? "8 bits" : to_string(reduced));
    ++products;
  }
  if (products == 0) return "the step has no product that could compute in fewer bits";
  for (const Value& value : lowered.values)
    if (value.persistent && is_real(value.dtype) && value.dtype != DType::f32)
      return fmt::format("'{}' is kept in {} between steps, not in f32", value.name,
                         to_string(value.dtype));
  return std::nullopt;
}

}  // namespace headroom
