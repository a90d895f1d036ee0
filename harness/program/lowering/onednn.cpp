// Rules `onednn`: what oneDNN wants on this machine. Convolutions and products choose their
// layouts, everything else follows; a reorder stands wherever two neighbours differ; scratchpads
// are values of the Program. Asks the library for descriptors only and touches no tensor memory.
#include <dnnl_debug.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/lowering.h"
#include "harness/program/lowering/fusion.h"
#include "harness/program/offload.h"
#include "harness/program/onednn/library_op.h"
#include "harness/program/update_lists.h"

// Of the OpenMP runtime; declared here because clang's tools do not find gcc's omp.h.
extern "C" int omp_get_max_threads();

namespace headroom {
namespace {

using onednn::Layout;
using onednn::LibraryRole;
using Layouts = std::vector<Layout>;

struct Wishes {
  Layouts inputs;
  Layouts outputs;
};

// Of kinds whose operands lie as the first one does, element by element: how many do; the others
// are plain, and all results lie as the first operand. 0 for other kinds.
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

class Lowering {
 public:
  Lowering(const Program& program, PersistentLayouts& persistent)
      : source_(program), persistent_(persistent), lowered_(source_) {
    lowered_.ops.clear();
    layouts_.resize(source_.values.size());
  }

  Program run() {
    refuse_types();
    for (const ValueId id : source_.inputs) decide(id, plain(id));
    take_persistent();
    pair_gradients();
    lower_ops();
    for (ValueId id = 0; id < source_.values.size(); ++id) {
      if (!layouts_[id]) decide(id, plain(id));  // persistent and not used here
      if (lowered_.value(id).persistent)
        persistent_.try_emplace(lowered_.value(id).name, lowered_.value(id));
    }
    return std::move(lowered_);
  }

 private:
  // Two neighbours as one where one kernel computes both in the layout that has come about.
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
      return actual(fused.inputs[2]) == plain(fused.inputs[2]);
    return !fused.kind.starts_with("batch_norm") || lies_in_groups(fused.inputs[0]);
  }
  // Then a batch normalisation is computed by loops of our own (kernels/channel_groups.h).
  bool lies_in_groups(ValueId id) const { return onednn::lies_in_channel_groups(actual(id)); }
  bool is_of_library(const Op& op) const {
    const bool can_be_ours = op.kind == "batch_norm" || op.kind == "batch_norm_backward";
    return onednn::library_role(op.kind) != LibraryRole::none &&
           !(can_be_ours && lies_in_groups(op.inputs[0]));
  }

  // Before the library is asked for descriptors it would refuse one by one.
  void refuse_types() const {
    constexpr auto kWide = static_cast<unsigned>(dnnl_cpu_isa_avx512_core);
    const bool wide = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kWide) == kWide;
    for (const Value& value : source_.values) {
      if (value.dtype == DType::bf16 && !wide)
        throw NotSupported(
            "oneDNN computes bf16 on CPUs with AVX-512 only, which this one has not: take device "
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

  // Which weight each gradient, or part of one, will update.
  void pair_gradients() {
    weight_of_.assign(source_.values.size(), kNoValue);
    for (const auto& [weight, gradient] : source_.gradients) weight_of_[gradient] = weight;
    for (std::size_t index = source_.ops.size(); index-- > 0;) {
      const Op& op = source_.ops[index];
      if (op.kind == "accumulate") weight_of_[op.inputs[1]] = weight_of_[op.inputs[0]];
      if (op.kind != "add" || weight_of_[op.outputs[0]] == kNoValue) continue;
      for (const ValueId part : op.inputs) weight_of_[part] = weight_of_[op.outputs[0]];
    }
  }

  Layout plain(ValueId id) const {
    return onednn::plain_layout(source_.value(id).shape, source_.value(id).dtype);
  }
  Layout free(ValueId id) const {
    return onednn::free_layout(source_.value(id).shape, source_.value(id).dtype);
  }
  // The weight that decides where this one's elements lie: itself, or that of which it is a
  // gradient.
  ValueId lies_for(ValueId id) const { return source_.value(id).persistent ? id : weight_of_[id]; }
  // Of an operand of a linear layer. In 8 bits all but these lie plainly, as `quantise` leaves them
  // and as the copies are made that the library computes with. A weight stays as it lies, since it
  // may be large (a table of embeddings that is the last layer too), and so does its gradient. In
  // f32 it lies plainly: the library's products are fast either way, but on an AVX-512 Xeon it
  // takes twice as long to write the gradients of BERT's 3072 × 768 weights into the blocks it
  // would choose.
  Layout settled(ValueId id, DType computed) const {
    const ValueId lies = lies_for(id);
    if (lies == kNoValue) return free(id);
    if (layouts_[lies]) return *layouts_[lies];
    return computed == DType::f32 ? plain(id) : free(id);
  }
  // Of an undecided value: row-major.
  Layout actual(ValueId id) const { return layouts_[id].value_or(plain(id)); }

  template <typename LayoutOf>
  Wishes wish_all(const Op& op, LayoutOf layout_of) const {
    Wishes wishes;
    for (const ValueId id : op.inputs) wishes.inputs.push_back(layout_of(id));
    for (const ValueId id : op.outputs) wishes.outputs.push_back(layout_of(id));
    return wishes;
  }

  static Wishes of_library(const onednn::LibraryOp& described) {
    Wishes wishes;
    for (const auto& operand : described.inputs) wishes.inputs.push_back(operand.layout);
    for (const auto& operand : described.outputs) wishes.outputs.push_back(operand.layout);
    return wishes;
  }

  Wishes wishes(const Op& op) const {
    if (onednn::library_role(op.kind) == LibraryRole::chooses) {
      const bool product = op.kind.starts_with("linear");
      const DType computed = source_.value(op.inputs[0]).dtype;
      const auto layout = [&](ValueId id) {
        if (is_f8(computed)) return lies_for(id) == kNoValue ? plain(id) : settled(id, DType::f32);
        return product ? settled(id, computed) : free(id);
      };
      const Wishes any = wish_all(op, layout);
      return of_library(onednn::describe(op, any.inputs, any.outputs));
    }
    if (onednn::library_role(op.kind) == LibraryRole::follows) {
      Wishes given = wish_all(op, [&](ValueId id) { return actual(id); });
      if (op.kind == "max_pool_backward") given.outputs[0] = pooled_layout(op.inputs[1]);
      if (op.kind == "cast") given.outputs[0] = cast_layout(op);
      return of_library(onednn::describe(op, given.inputs, given.outputs));
    }
    return wishes_of_own_loops(op);
  }

  // The kinds that the host computes with loops of its own.
  Wishes wishes_of_own_loops(const Op& op) const {
    if (const std::size_t operands = operands_like_first(op.kind); operands > 0) {
      Wishes wishes = wish_all(op, [&](ValueId) { return actual(op.inputs[0]); });
      for (std::size_t i = operands; i < op.inputs.size(); ++i)
        wishes.inputs[i] = plain(op.inputs[i]);
      return wishes;
    }
    if (op.kind.starts_with("batch_norm_")) {  // those with a relu
      const Shape& image = source_.value(op.inputs[0]).shape;
      Layout layout = actual(op.inputs[0]);
      if (!onednn::lies_in_channel_groups(layout)) layout = onednn::grouped_channels(image);
      return wish_all(
          op, [&](ValueId id) { return source_.value(id).shape == image ? layout : plain(id); });
    }
    if (op.kind == "masked") {
      const auto known = [&](ValueId id) { return layouts_[id]; };
      auto layout = known(op.inputs[1]);  // the mask lies as its weight does
      if (!layout) layout = known(op.inputs[0]);
      if (!layout) layout = wish_of_readers(op.outputs[0]);
      return wish_all(op, [&](ValueId id) { return layout.value_or(plain(id)); });
    }
    // As the weight lies that the sum will update; without one, as the gradient does.
    if (op.kind == "accumulate") {
      const ValueId weight = weight_of_[op.inputs[0]];
      Wishes wishes =
          wish_all(op, [&](ValueId) { return actual(weight == kNoValue ? op.inputs[1] : weight); });
      if (op.inputs.size() == 3) wishes.inputs[2] = plain(op.inputs[2]);
      return wishes;
    }
    if (const OperandGroups groups = operand_groups(op.kind); groups.operands > 0)
      return wishes_of_lists(op, groups);
    if (op.kind == "check_gradients" || op.kind == "clip_factor" || op.kind == "hold" ||
        op.kind == "scale_gradient")
      return wish_all(op, [&](ValueId id) { return actual(id); });
    if (op.kind == "add") {
      const bool first_is_plain = actual(op.inputs[0]) == plain(op.inputs[0]);
      return wish_all(op, [&](ValueId) { return actual(op.inputs[first_is_plain ? 1 : 0]); });
    }
    Wishes wishes = wish_all(op, [&](ValueId id) { return plain(id); });
    onednn::ImageLayout image;
    const bool resamples = op.kind == "sum_pool" || op.kind == "upsample";
    if ((resamples || op.kind == "global_average_pool") &&
        onednn::read_image_layout(actual(op.inputs[0]), image))
      wishes.inputs[0] = actual(op.inputs[0]);
    if (resamples || op.kind == "global_average_pool_backward") {
      const auto wanted = wish_of_readers(op.outputs[0]);
      if (wanted && onednn::read_image_layout(*wanted, image)) wishes.outputs[0] = *wanted;
    }
    return wishes;
  }

  // Each group as the weight lies that it is about; a result as its group.
  Wishes wishes_of_lists(const Op& op, const OperandGroups& groups) const {
    Wishes wishes = wish_all(op, [&](ValueId id) { return plain(id); });
    for (std::size_t group = 0; group < groups.count(op); ++group) {
      const std::size_t begin = group * groups.operands;
      const ValueId first = op.inputs[begin], weight = weight_of_[first];
      const Layout layout = actual(weight == kNoValue ? first : weight);
      std::fill_n(wishes.inputs.begin() + static_cast<std::ptrdiff_t>(begin), groups.operands,
                  layout);
      if (!op.outputs.empty()) wishes.outputs[group] = layout;
    }
    return wishes;
  }

  // A cast moves every element anyway: into the places where it will be read.
  Layout cast_layout(const Op& op) const {
    const ValueId made = op.outputs[0];
    return wish_of_readers(made).value_or(
        onednn::in_type(actual(op.inputs[0]), source_.value(made).dtype));
  }

  // What max_pool read when it made these indices.
  Layout pooled_layout(ValueId indices) const {
    for (std::size_t index = lowered_.ops.size(); index-- > 0;) {
      const Op& op = lowered_.ops[index];
      if (is_transfer(op) && op.outputs[0] == indices) indices = op.inputs[0];
      if (op.kind == "max_pool" && op.outputs[1] == indices) return *layouts_[op.inputs[0]];
    }
    throw Error(fmt::format("'{}' was not made by a max_pool", source_.value(indices).name));
  }

  // The layout in which the value would be read without a reorder, if some reader knows it.
  std::optional<Layout> wish_of_readers(ValueId id) const {
    for (const Op& op : source_.ops) {
      const auto found = std::find(op.inputs.begin(), op.inputs.end(), id);
      if (found == op.inputs.end()) continue;
      if (is_transfer(op)) {
        if (auto wish = wish_of_readers(op.outputs[0])) return wish;
        continue;
      }
      const auto operand = static_cast<std::size_t>(found - op.inputs.begin());
      if (onednn::library_role(op.kind) == LibraryRole::chooses) return wishes(op).inputs[operand];
      for (const ValueId other : op.inputs)
        if (other != kNoValue && other != id && layouts_[other] &&
            source_.value(other).shape == source_.value(id).shape)
          return onednn::in_type(*layouts_[other], source_.value(id).dtype);
    }
    return std::nullopt;
  }

  void lower(const Op& source) {
    const Wishes wanted = wishes(source);
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
  // across phases it would stay alive for longer than making it anew is worth.
  ValueId in_layout(ValueId id, const Layout& wanted, const Op& user, std::size_t operand) {
    if (!layouts_[id]) decide(id, wanted);
    if (*layouts_[id] == wanted) return id;
    if (layouts_[id]->data_type() != wanted.data_type())
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

  // Asked once more with the planned layouts, as the kernel will: the scratchpad is exact.
  void add_workspace(Op& op) {
    const auto planned = [&](ValueId id) { return *layouts_[id]; };
    const Wishes layouts = wish_all(op, planned);
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
    layouts_[id] = layout;
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
  std::vector<ValueId> weight_of_;              // by id in source_
  std::vector<Copy> copies_;
};

std::string identity(const Spec&) {
  const dnnl_version_t& version = *dnnl_version();
  std::string_view isa = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  if (isa.starts_with("cpu_isa_")) isa.remove_prefix(8);
  return fmt::format("onednn({}.{}.{},{},threads={})", version.major, version.minor, version.patch,
                     isa, omp_get_max_threads());
}

const bool registered = Registry<LoweringRules>::instance().add(
    {.name = "onednn",
     .summary = "layouts, reorders and scratchpads of oneDNN on this machine",
     .identity = identity,
     .lower = [](const Program& program, PersistentLayouts& persistent, const Spec&) {
       return Lowering(program, persistent).run();
     }});

}  // namespace
}  // namespace headroom
