// The layouts that oneDNN and the host's own loops want for the operands of an op: convolutions and
// products choose freely, everything else follows earlier decisions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "harness/program/onednn/library_op.h"
#include "harness/program/program.h"
#include "harness/program/update_lists.h"

namespace headroom {

// Layouts of all operands of one op, in its order.
struct OperandLayouts {
  std::vector<onednn::Layout> inputs;
  std::vector<onednn::Layout> outputs;
};

template <typename LayoutOf>
OperandLayouts layouts_of_operands(const Op& op, LayoutOf layout_of) {
  OperandLayouts layouts;
  for (const ValueId id : op.inputs) layouts.inputs.push_back(layout_of(id));
  for (const ValueId id : op.outputs) layouts.outputs.push_back(layout_of(id));
  return layouts;
}

class PreferredLayouts {
 public:
  using Layout = onednn::Layout;

  // Takes a Program, its lowered form so far, and the layouts decided so far, by id in `lowered`.
  // All three are read on every call.
  PreferredLayouts(const Program& source, const Program& lowered,
                   const std::vector<std::optional<Layout>>& layouts);

  // `op` may be a fusion of neighbours; its operands are values of the source.
  OperandLayouts of(const Op& op) const;

  Layout plain(ValueId id) const;
  // Row-major for a value whose layout is undecided.
  Layout actual(ValueId id) const;

 private:
  void pair_gradients();
  Layout free(ValueId id) const;
  ValueId layout_weight_of(ValueId id) const;
  Layout settled(ValueId id, DType computed) const;
  OperandLayouts of_own_loops(const Op& op) const;
  OperandLayouts of_lists(const Op& op, const OperandGroups& groups) const;
  Layout cast_layout(const Op& op) const;
  Layout pooled_layout(ValueId indices) const;
  std::optional<Layout> preferred_by_readers(ValueId id) const;

  const Program& source_;
  const Program& lowered_;
  const std::vector<std::optional<Layout>>& layouts_;
  std::vector<ValueId> weight_of_;  // by id in source_
};

}  // namespace headroom
