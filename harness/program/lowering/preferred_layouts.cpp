#include "harness/program/lowering/preferred_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/error.h"
#include "harness/program/offload.h"

namespace headroom {
namespace {

using onednn::Layout;
using onednn::LibraryRole;

// Returns how many leading operands share the first one's layout, element by element; 0 if the kind
// has none. Its other operands are plain, and all results have the first operand's layout.
std::size_t operands_like_first(std::string_view kind) {
  static const std::map<std::string_view, std::size_t> kinds = {{"adafactor", 2},
                                                                {"adam", 4},
                                                                {"adam8bit", 2},
                                                                {"apply_mask", 2},
                                                                {"copy_in", 1},
                                                                {"copy_out", 1},
                                                                {"divide", 1},
                                                                {"leaky_relu", 1},
                                                                {"leaky_relu_backward", 2},
                                                                {"magnitude_mask", 2},
                                                                {"relu", 1},
                                                                {"relu_backward", 2},
                                                                {"sgd_momentum", 3},
                                                                {"two_of_four_mask", 2}};
  const auto found = kinds.find(kind);
  return found == kinds.end() ? 0 : found->second;
}

OperandLayouts of_library(const onednn::LibraryOp& described) {
  OperandLayouts layouts;
  for (const auto& operand : described.inputs) layouts.inputs.push_back(operand.layout);
  for (const auto& operand : described.outputs) layouts.outputs.push_back(operand.layout);
  return layouts;
}

}  // namespace

PreferredLayouts::PreferredLayouts(const Program& source, const Program& lowered,
                                   const std::vector<std::optional<Layout>>& layouts)
    : source_(source), lowered_(lowered), layouts_(layouts) {
  pair_gradients();
}

// Finds the weight that each gradient, or part of one, will update.
void PreferredLayouts::pair_gradients() {
  weight_of_.assign(source_.values.size(), kNoValue);
  for (const auto& [weight, gradient] : source_.gradients) weight_of_[gradient] = weight;
  for (std::size_t index = source_.ops.size(); index-- > 0;) {
    const Op& op = source_.ops[index];
    if (op.kind == "accumulate") weight_of_[op.inputs[1]] = weight_of_[op.inputs[0]];
    if (op.kind != "add" || weight_of_[op.outputs[0]] == kNoValue) continue;
    for (const ValueId part : op.inputs) weight_of_[part] = weight_of_[op.outputs[0]];
  }
}

PreferredLayouts::Layout PreferredLayouts::plain(ValueId id) const {
  return onednn::plain_layout(source_.value(id).shape, source_.value(id).dtype);
}
PreferredLayouts::Layout PreferredLayouts::free(ValueId id) const {
  return onednn::free_layout(source_.value(id).shape, source_.value(id).dtype);
}
// The weight that determines the layout of this value: itself, or the weight of which it is a
// gradient.
ValueId PreferredLayouts::layout_weight_of(ValueId id) const {
  return source_.value(id).persistent ? id : weight_of_[id];
}
// Layout of an operand of a linear layer. In 8 bits, all operands except weights and their
// gradients are plain, because `quantise` and the library's copies write them so. A weight keeps
// its layout, since it may be large (a table of embeddings that is also the last layer), and so
// does its gradient. In f32 an operand is plain: the library's products are fast either way, but on
// an AVX-512 Xeon writing the gradients of BERT's 3072 × 768 weights into the library's preferred
// blocks takes twice as long.
PreferredLayouts::Layout PreferredLayouts::settled(ValueId id, DType computed) const {
  const ValueId lies = layout_weight_of(id);
  if (lies == kNoValue) return free(id);
  if (layouts_[lies]) return *layouts_[lies];
  return computed == DType::f32 ? plain(id) : free(id);
}
// Row-major for a value whose layout is undecided.
PreferredLayouts::Layout PreferredLayouts::actual(ValueId id) const {
  return layouts_[id].value_or(plain(id));
}

OperandLayouts PreferredLayouts::of(const Op& op) const {
  if (onednn::library_role(op.kind) == LibraryRole::chooses) {
    const bool product = op.kind.starts_with("linear");
    const DType computed = source_.value(op.inputs[0]).dtype;
    const auto layout = [&](ValueId id) {
      if (is_f8(computed))
        return layout_weight_of(id) == kNoValue ? plain(id) : settled(id, DType::f32);
      return product ? settled(id, computed) : free(id);
    };
    const OperandLayouts any = layouts_of_operands(op, layout);
    return of_library(onednn::describe(op, any.inputs, any.outputs));
  }
  if (onednn::library_role(op.kind) == LibraryRole::follows) {
    OperandLayouts given = layouts_of_operands(op, [&](ValueId id) { return actual(id); });
    if (op.kind == "max_pool_backward") given.outputs[0] = pooled_layout(op.inputs[1]);
    if (op.kind == "cast") given.outputs[0] = cast_layout(op);
    return of_library(onednn::describe(op, given.inputs, given.outputs));
  }
  return of_own_loops(op);
}

// Layouts for the kinds that the host computes with its own loops.
OperandLayouts PreferredLayouts::of_own_loops(const Op& op) const {
  if (const std::size_t operands = operands_like_first(op.kind); operands > 0) {
    OperandLayouts layouts = layouts_of_operands(op, [&](ValueId) { return actual(op.inputs[0]); });
    for (std::size_t i = operands; i < op.inputs.size(); ++i)
      layouts.inputs[i] = plain(op.inputs[i]);
    return layouts;
  }
  if (op.kind.starts_with("batch_norm_")) {  // the kinds fused with relu
    const Shape& image = source_.value(op.inputs[0]).shape;
    Layout layout = actual(op.inputs[0]);
    if (!onednn::lies_in_channel_groups(layout)) layout = onednn::grouped_channels(image);
    return layouts_of_operands(
        op, [&](ValueId id) { return source_.value(id).shape == image ? layout : plain(id); });
  }
  if (op.kind == "masked") {
    const auto known = [&](ValueId id) { return layouts_[id]; };
    auto layout = known(op.inputs[1]);  // the mask has its weight's layout
    if (!layout) layout = known(op.inputs[0]);
    if (!layout) layout = preferred_by_readers(op.outputs[0]);
    return layouts_of_operands(op, [&](ValueId id) { return layout.value_or(plain(id)); });
  }
  // The layout of the weight that the sum will update; without a weight, that of the gradient.
  if (op.kind == "accumulate") {
    const ValueId weight = weight_of_[op.inputs[0]];
    OperandLayouts layouts = layouts_of_operands(
        op, [&](ValueId) { return actual(weight == kNoValue ? op.inputs[1] : weight); });
    if (op.inputs.size() == 3) layouts.inputs[2] = plain(op.inputs[2]);
    return layouts;
  }
  if (const OperandGroups groups = operand_groups(op.kind); groups.operands > 0)
    return of_lists(op, groups);
  if (op.kind == "check_gradients" || op.kind == "clip_factor" || op.kind == "hold" ||
      op.kind == "scale_gradient")
    return layouts_of_operands(op, [&](ValueId id) { return actual(id); });
  if (op.kind == "add") {
    const bool first_is_plain = actual(op.inputs[0]) == plain(op.inputs[0]);
    return layouts_of_operands(op,
                               [&](ValueId) { return actual(op.inputs[first_is_plain ? 1 : 0]); });
  }
  OperandLayouts layouts = layouts_of_operands(op, [&](ValueId id) { return plain(id); });
  onednn::ImageLayout image;
  const bool resamples = op.kind == "sum_pool" || op.kind == "upsample";
  if ((resamples || op.kind == "global_average_pool") &&
      onednn::read_image_layout(actual(op.inputs[0]), image))
    layouts.inputs[0] = actual(op.inputs[0]);
  if (resamples || op.kind == "global_average_pool_backward") {
    const auto wanted = preferred_by_readers(op.outputs[0]);
    if (wanted && onednn::read_image_layout(*wanted, image)) layouts.outputs[0] = *wanted;
  }
  return layouts;
}

// Each group has the layout of its weight; a result has that of its group.
OperandLayouts PreferredLayouts::of_lists(const Op& op, const OperandGroups& groups) const {
  OperandLayouts layouts = layouts_of_operands(op, [&](ValueId id) { return plain(id); });
  for (std::size_t group = 0; group < groups.count(op); ++group) {
    const std::size_t begin = group * groups.operands;
    const ValueId first = op.inputs[begin], weight = weight_of_[first];
    const Layout layout = actual(weight == kNoValue ? first : weight);
    std::fill_n(layouts.inputs.begin() + static_cast<std::ptrdiff_t>(begin), groups.operands,
                layout);
    if (!op.outputs.empty()) layouts.outputs[group] = layout;
  }
  return layouts;
}

// A cast moves every element anyway, so it writes the layout in which the result will be read.
PreferredLayouts::Layout PreferredLayouts::cast_layout(const Op& op) const {
  const ValueId made = op.outputs[0];
  return preferred_by_readers(made).value_or(
      onednn::in_type(actual(op.inputs[0]), source_.value(made).dtype));
}

// The layout that max_pool read when it made these indices.
PreferredLayouts::Layout PreferredLayouts::pooled_layout(ValueId indices) const {
  for (std::size_t index = lowered_.ops.size(); index-- > 0;) {
    const Op& op = lowered_.ops[index];
    if (is_transfer(op) && op.outputs[0] == indices) indices = op.inputs[0];
    if (op.kind == "max_pool" && op.outputs[1] == indices) return *layouts_[op.inputs[0]];
  }
  throw Error(fmt::format("'{}' was not made by a max_pool", source_.value(indices).name));
}

// The layout in which the value would be read without a reorder, if some reader knows it.
std::optional<PreferredLayouts::Layout> PreferredLayouts::preferred_by_readers(ValueId id) const {
  for (const Op& op : source_.ops) {
    const auto found = std::find(op.inputs.begin(), op.inputs.end(), id);
    if (found == op.inputs.end()) continue;
    if (is_transfer(op)) {
      if (auto layout = preferred_by_readers(op.outputs[0])) return layout;
      continue;
    }
    const auto operand = static_cast<std::size_t>(found - op.inputs.begin());
    if (onednn::library_role(op.kind) == LibraryRole::chooses) return of(op).inputs[operand];
    for (const ValueId other : op.inputs)
      if (other != kNoValue && other != id && layouts_[other] &&
          source_.value(other).shape == source_.value(id).shape)
        return onednn::in_type(*layouts_[other], source_.value(id).dtype);
  }
  return std::nullopt;
}

}  // namespace headroom
