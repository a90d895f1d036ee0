#include "harness/device/cuda/module/channels_last.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/program/lowering/channels_last.h"
#include "harness/program/lowering/workspace_limit.h"

namespace headroom::cuda {
namespace {

// Kinds whose images must all be in the same order.
const std::set<std::string_view> kAlike = {"add",
                                           "batch_norm",
                                           "batch_norm_add_relu",
                                           "batch_norm_backward",
                                           "copy_in",
                                           "batch_norm_inference",
                                           "batch_norm_relu",
                                           "batch_norm_relu_backward",
                                           "copy_out",
                                           "gelu",
                                           "gelu_backward",
                                           "leaky_relu",
                                           "max_pool",
                                           "leaky_relu_backward",
                                           "max_pool_backward",
                                           "relu",
                                           "tanh",
                                           "relu_backward",
                                           "tanh_backward"};
// Kinds that take each operand in either order.
const std::set<std::string_view> kAnyOrder = {"cast", "global_average_pool",
                                              "global_average_pool_backward", "hold"};

// Includes the places of maxima, which are bytes.
bool can_be_channels_last(const Value& value) {
  return value.shape.size() == 4 && !value.persistent && value.role != Role::input &&
         (size_of(value.dtype) == 2 || value.dtype == DType::u8);
}

// The images of a convolution; its other operand is the weights or their gradient.
std::vector<ValueId> images_of_convolution(const Op& op) {
  if (op.kind == "convolution_backward_weights") return {op.inputs.at(0), op.inputs.at(1)};
  return {op.inputs.at(0), op.outputs.at(0)};
}

std::vector<ValueId> operands_of(const Op& op) {
  std::vector<ValueId> all = op.outputs;
  for (const ValueId id : op.inputs)
    if (id != kNoValue) all.push_back(id);
  return all;
}

// Values that must be in the same order, as sets of which one value is the root.
class Groups {
 public:
  explicit Groups(const Program& program) : program_(program), next_(program.values.size()) {
    std::iota(next_.begin(), next_.end(), ValueId{0});
    for (const Op& op : program.ops) unite(op);
    stays_.resize(next_.size());
    for (const Op& op : program.ops) keep_row_major(op);
    for (const auto* ids : {&program.inputs, &program.results})
      for (const ValueId id : *ids) stays_[root(id)] = true;
  }

  ValueId root(ValueId id) const {
    while (next_[id] != id) id = next_[id];
    return id;
  }
  bool stays_row_major(ValueId id) const { return stays_[root(id)]; }

 private:
  std::vector<ValueId> alike(const Op& op) const {
    if (is_convolution(op)) return images_of_convolution(op);
    std::vector<ValueId> images;
    if (kAlike.contains(op.kind))
      for (const ValueId id : operands_of(op))
        if (program_.value(id).shape.size() == 4) images.push_back(id);
    return images;
  }

  void unite(const Op& op) {
    const std::vector<ValueId> images = alike(op);
    for (std::size_t i = 1; i < images.size(); ++i) next_[root(images[i])] = root(images[0]);
  }

  void keep_row_major(const Op& op) {
    const std::vector<ValueId> images = alike(op);
    for (const ValueId id : operands_of(op)) {
      const bool has_kernel = std::find(images.begin(), images.end(), id) != images.end() ||
                              kAnyOrder.contains(op.kind);
      if (!has_kernel || !can_be_channels_last(program_.value(id))) stays_[root(id)] = true;
    }
  }

  const Program& program_;
  std::vector<ValueId> next_;  // by value; a root is its own next
  std::vector<bool> stays_;    // by root
};

class Marking {
 public:
  explicit Marking(Program program) : program_(std::move(program)) {}

  Program run(const std::function<bool(const Program&, const Op&)>& runs) {
    const Groups groups(program_);
    std::vector<int> gain(program_.values.size());  // by root: convolutions that run, less others
    for (const Op& op : program_.ops)
      if (is_convolution(op)) gain[groups.root(images_of_convolution(op)[0])] = 1;
    mark(groups, gain);
    for (const Op& op : program_.ops) {
      if (!has_marked(op)) continue;
      const bool accepted = runs(program_, op);
      if (!accepted) rejected_.insert(op.outputs.at(0));
      gain[groups.root(images_of_convolution(op)[0])] += accepted ? 1 : -1;
    }
    mark(groups, gain);
    for (Op& op : std::exchange(program_.ops, {})) add(std::move(op));
    return std::move(program_);
  }

 private:
  void mark(const Groups& groups, const std::vector<int>& gain) {
    for (ValueId id = 0; id < gain.size(); ++id)
      program_.values[id].layout =
          gain[groups.root(id)] > 0 && !groups.stays_row_major(id) ? kChannelsLast : "";
  }

  bool has_marked(const Op& op) const {
    return is_convolution(op) && is_channels_last(program_.value(images_of_convolution(op)[0]));
  }

  void add(Op op) {
    if (!has_marked(op) || !rejected_.contains(op.outputs.at(0))) {
      program_.ops.push_back(std::move(op));
      return;
    }
    std::vector<Op> after;
    for (ValueId& id : op.inputs)
      if (is_channels_last(program_.value(id))) {
        const ValueId marked = std::exchange(id, row_major_copy(id));
        program_.ops.push_back(reorder(op, marked, id));
      }
    for (ValueId& id : op.outputs)
      if (is_channels_last(program_.value(id))) {
        const ValueId marked = std::exchange(id, row_major_copy(id));
        after.push_back(reorder(op, id, marked));
      }
    program_.ops.push_back(std::move(op));
    std::move(after.begin(), after.end(), std::back_inserter(program_.ops));
  }

  ValueId row_major_copy(ValueId id) {
    Value copy = program_.value(id);
    copy.name += ".row_major";
    copy.layout.clear();
    program_.values.push_back(std::move(copy));
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  static Op reorder(const Op& of, ValueId from, ValueId to) {
    return {.kind = "reorder",
            .name = of.name + ".reorder",
            .inputs = {from},
            .outputs = {to},
            .phase = of.phase};
  }

  Program program_;
  std::set<ValueId> rejected_;  // first outputs of convolutions
};

}  // namespace

Program keep_channels_last(Program program,
                           const std::function<bool(const Program&, const Op&)>& runs) {
  return Marking(std::move(program)).run(runs);
}

}  // namespace headroom::cuda
