// Rules `onednn`: what oneDNN needs on this machine. Layouts follow preferred_layouts.h; a reorder
// is inserted wherever two neighbours differ; scratchpads are values of the Program. Only asks the
// library for descriptors and touches no tensor memory.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/lowering/fusion.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/lowering/preferred_layouts.h"
#include "harness/program/lowering/workspace_limit.h"
#include "harness/program/onednn/library_op.h"

namespace headroom::onednn_lowering {
namespace {

using onednn::Layout;
using onednn::LibraryRole;

class Lowering {
 public:
  Lowering(const Program& program, PersistentLayouts& persistent)
      : source_(program),
        persistent_(persistent),
        lowered_(source_),
        preferred_(source_, lowered_, layouts_) {
    lowered_.ops.clear();
    layouts_.resize(source_.values.size());
  }

  Program run() {
    refuse_types();
    for (const ValueId id : source_.inputs) decide(id, preferred_.plain(id));
    take_persistent();
    lower_ops();
    for (ValueId id = 0; id < source_.values.size(); ++id) {
      if (!layouts_[id]) decide(id, preferred_.plain(id));  // persistent and not used here
      if (lowered_.value(id).persistent)
        persistent_.try_emplace(lowered_.value(id).name, lowered_.value(id));
    }
    return std::move(lowered_);
  }

 private:
  // Fuses neighbours when one kernel computes both in the layout that was decided.
  void lower_ops() {
    const auto fused = fusions(source_);
    std::vector<bool> is_done(source_.ops.size());
    for (std::size_t index = 0; index < source_.ops.size(); ++index) {
      if (is_done[index]) continue;
      const auto found = fused.find(index);
      if (found == fused.end() || !has_kernel(found->second.op)) {
        lower(source_.ops[index]);
        continue;
      }
      for (const std::size_t other : found->second.others) is_done[other] = true;
      lower(found->second.op);
    }
  }

  bool has_kernel(const Op& fused) const {
    if (fused.kind == "gather_rows_backward_add")
      return preferred_.actual(fused.inputs[2]) == preferred_.plain(fused.inputs[2]);
    if (fused.kind == "relu_backward") return false;
    return !fused.kind.starts_with("batch_norm") || lies_in_groups(fused.inputs[0]);
  }
  // Whether Headroom's own loops compute the batch normalisation of this value (channel_groups.h).
  bool lies_in_groups(ValueId id) const {
    return onednn::lies_in_channel_groups(preferred_.actual(id));
  }
  bool is_of_library(const Op& op) const {
    const bool can_be_ours = op.kind == "batch_norm" || op.kind == "batch_norm_backward";
    return onednn::library_role(op.kind) != LibraryRole::none &&
           !(can_be_ours && lies_in_groups(op.inputs[0]));
  }

  // Checked first, because the library would reject each descriptor separately.
  void refuse_types() const {
    constexpr auto kWide = static_cast<unsigned>(dnnl_cpu_isa_avx512_core);
    const bool wide = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kWide) == kWide;
    for (const Value& value : source_.values) {
      if (value.dtype == DType::bf16 && !wide)
        throw NotSupported(
            "oneDNN computes bf16 on CPUs with AVX-512 only, which this CPU lacks: use device "
            "meta with rules dense");
    }
  }

  void take_persistent() {
    for (ValueId id = 0; id < source_.values.size(); ++id) {
      const Value& value = source_.value(id);
      const auto found = persistent_.find(value.name);
      if (!value.persistent || found == persistent_.end()) continue;
      if (found->second.shape != value.shape || found->second.dtype != value.dtype)
        throw Error(fmt::format("'{}' is {} in one Program and {} in another", value.name,
                                to_string(found->second.shape), to_string(value.shape)));
      decide(id, onednn::layout_of(found->second));
    }
  }

  void lower(const Op& source) {
    const OperandLayouts wanted = preferred_.of(source);
    Op op = source;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      op.inputs[i] = in_layout(op.inputs[i], wanted.inputs[i], source, i);
      const bool changed = std::count(op.mutates.begin(), op.mutates.end(), source.inputs[i]) > 0;
      if (changed && op.inputs[i] != source.inputs[i])
        throw Error(fmt::format("{} ({}): '{}' is changed in place and cannot be reordered",
                                op.name, op.kind, source_.value(source.inputs[i]).name));
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) decide(op.outputs[i], wanted.outputs[i]);
    if (is_of_library(source)) add_workspace(op);
    std::erase_if(copies_, [&](const Copy& copy) {
      return std::count(op.mutates.begin(), op.mutates.end(), copy.original) > 0;
    });
    lowered_.ops.push_back(std::move(op));
  }

  // The value itself or a copy of it in the wanted layout. A copy is shared within its phase;
  // keeping it live across phases would cost more than making it again.
  ValueId in_layout(ValueId id, const Layout& wanted, const Op& user, std::size_t operand) {
    if (!layouts_[id]) decide(id, wanted);
    if (*layouts_[id] == wanted) return id;
    if (layouts_[id]->get_data_type() != wanted.get_data_type())
      throw Error(
          fmt::format("{} ({}): '{}' would have to change its element type, which only a "
                      "cast does",
                      user.name, user.kind, source_.value(id).name));
    for (const Copy& copy : copies_)
      if (copy.original == id && copy.phase == user.phase && *layouts_[copy.made] == wanted)
        return copy.made;
    ProgramBuilder builder(lowered_, user.phase);
    const ValueId made =
        builder.emit_one("reorder", fmt::format("{}.reorder{}", user.name, operand), {id});
    layouts_.emplace_back();
    decide(made, wanted);
    Op reorder = std::move(lowered_.ops.back());
    lowered_.ops.pop_back();
    add_workspace(reorder);
    lowered_.ops.push_back(std::move(reorder));
    copies_.push_back({id, user.phase, made});
    return made;
  }

  // Asks the library again with the planned layouts, as the kernel will, so that the scratchpad
  // size is exact.
  void add_workspace(Op& op) {
    const auto planned = [&](ValueId id) { return *layouts_[id]; };
    const OperandLayouts layouts = layouts_of_operands(op, planned);
    const auto described = onednn::describe(op, layouts.inputs, layouts.outputs);
    const Bytes bytes = described.workspace_bytes();
    if (bytes == 0) return;
    op.workspace = static_cast<ValueId>(lowered_.values.size());
    lowered_.values.push_back({.name = op.name + ".workspace",
                               .shape = {static_cast<std::int64_t>(bytes)},
                               .dtype = DType::u8,
                               .role = Role::workspace});
    layouts_.emplace_back();
    decide(op.workspace, onednn::plain_layout({static_cast<std::int64_t>(bytes)}, DType::u8));
  }

  void decide(ValueId id, const Layout& layout) {
    onednn::set_layout(lowered_.values[id], layout);
    layouts_[id] = onednn::layout_of(lowered_.values[id]);  // as kernels will see it
  }

  struct Copy {
    ValueId original;
    Phase phase;
    ValueId made;
  };

  const Program& source_;
  PersistentLayouts& persistent_;
  Program lowered_;
  std::vector<std::optional<Layout>> layouts_;  // by id in lowered_
  PreferredLayouts preferred_;
  std::vector<Copy> copies_;
};

// The default leaves the peaks of ResNet-18 (64 small images) and ResNet-50 (8) unchanged.
Bytes limit_of(const Spec& spec) { return spec.bytes("workspace_limit", 16 * kMiB); }

std::string identity(const Spec& spec) {
  return fmt::format("onednn({},workspace_limit={})", onednn::library_here(), limit_of(spec));
}

const bool registered = Registry<LoweringRules>::instance().add(
    {.name = "onednn",
     .summary = "Layouts, reorders and scratchpads of oneDNN on this machine. workspace_limit= "
                "(16MiB) is the most that a convolution may take for Winograd's algorithm",
     .parameters = {"workspace_limit"},
     .identity = identity,
     .lower = [](Program program, PersistentLayouts& persistent, const Spec& spec) {
       limit_workspaces(program, limit_of(spec));
       return Lowering(program, persistent).run();
     }});

}  // namespace
}  // namespace headroom::onednn_lowering
