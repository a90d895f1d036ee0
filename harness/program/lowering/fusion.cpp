#include "harness/program/lowering/fusion.h"

#include <optional>

#include "harness/program/in_place.h"

namespace headroom {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

class Finder {
 public:
  explicit Finder(const Program& program)
      : program_(program), maker_(program.values.size(), kNone), readers_(program.values.size()) {
    for (std::size_t index = 0; index < program.ops.size(); ++index) {
      for (const ValueId id : program.ops[index].outputs) maker_[id] = index;
      for (const ValueId id : program.ops[index].inputs)
        if (id != kNoValue) readers_[id].push_back(index);
    }
    for (const ValueId id : program.results) readers_[id].push_back(kNone);
  }

  std::map<std::size_t, Fusion> find() {
    for (std::size_t index = 0; index < program_.ops.size(); ++index) {
      const std::string& kind = program_.ops[index].kind;
      std::optional<Fusion> fusion;
      if (kind == "batch_norm") fusion = forward(index);
      if (kind == "relu_backward") fusion = backward(index);
      if (kind == "gather_rows_backward") fusion = table_gradient(index);
      if (kind == "add") fusion = sum_of_gradients(index);
      if (kind == "softmax_cross_entropy") fusion = loss(index);
      if (fusion) found_.emplace(index, std::move(*fusion));
    }
    return std::move(found_);
  }

 private:
  const Op& op(std::size_t index) const { return program_.ops[index]; }

  // Index of the only op that reads the value, if it is of this kind and phase; else kNone.
  std::size_t only_reader(ValueId id, std::string_view kind, Phase phase) const {
    if (readers_[id].size() != 1 || readers_[id][0] == kNone) return kNone;
    const Op& reader = op(readers_[id][0]);
    return reader.kind == kind && reader.phase == phase ? readers_[id][0] : kNone;
  }

  std::optional<Fusion> forward(std::size_t index) const {
    Fusion fusion{.op = op(index), .others = {}};
    ValueId made = fusion.op.outputs[0];
    fusion.op.kind = "batch_norm_relu";
    if (const std::size_t sum = only_reader(made, "add", fusion.op.phase); sum != kNone) {
      const Op& add = op(sum);
      const ValueId other = add.inputs[add.inputs[0] == made ? 1 : 0];
      if (maker_[other] != kNone && maker_[other] > index) return std::nullopt;  // not computed yet
      fusion.op.kind = "batch_norm_add_relu";
      fusion.op.inputs.push_back(other);
      fusion.others.push_back(sum);
      made = add.outputs[0];
    }
    const std::size_t relu = only_reader(made, "relu", fusion.op.phase);
    if (relu == kNone) return std::nullopt;
    fusion.others.push_back(relu);
    fusion.op.outputs[0] = op(relu).outputs[0];
    return fusion;
  }

  // The fused batch normalisation that made this relu output, if `norm` is its backward pass. Its
  // operand then shows where relu passed the gradient on.
  const Op* norm_before(ValueId relu_output, const Op& norm) const {
    const std::size_t place = maker_[norm.inputs[2]];
    const auto fused = place == kNone ? found_.end() : found_.find(place);
    if (fused == found_.end() || fused->second.op.kind != "batch_norm_relu") return nullptr;
    const Op& forward = fused->second.op;
    const bool same = forward.outputs[0] == relu_output && forward.inputs[0] == norm.inputs[0] &&
                      forward.outputs[1] == norm.inputs[2] &&
                      forward.outputs[2] == norm.inputs[3] && forward.inputs[1] == norm.inputs[4];
    return same ? &forward : nullptr;
  }

  std::optional<Fusion> backward(std::size_t index) const {
    const Op& relu = op(index);
    const ValueId gradient = relu.outputs[0];
    const std::size_t next = index + 1;  // otherwise dy and y would have to stay live
    if (next == program_.ops.size() || op(next).kind != "batch_norm_backward" ||
        op(next).inputs[1] != gradient || op(next).phase != relu.phase)
      return std::nullopt;
    Fusion fusion{.op = op(next), .others = {next}};
    fusion.op.inputs[1] = relu.inputs[1];
    if (readers_[gradient].size() == 1) {
      const Op* before = norm_before(relu.inputs[0], op(next));
      if (before == nullptr) return std::nullopt;
      fusion.op.kind = "batch_norm_relu_backward";
      fusion.op.inputs.push_back(before->inputs[2]);
      return fusion;
    }
    fusion.op.kind = "batch_norm_add_relu_backward";
    fusion.op.inputs.push_back(relu.inputs[0]);
    fusion.op.outputs.push_back(gradient);
    // Without fusion, dy and g would not be live at the same time as dx.
    const ValueId dy = relu.inputs[1];
    if (maker_[dy] != kNone && readers_[dy].size() == 1)
      put_in_place(fusion.op, {.output = 3, .input = 1});
    return fusion;
  }

  // Rows touch only a small part of a table, so they are added to the existing gradient instead of
  // to zeros.
  std::optional<Fusion> table_gradient(std::size_t index) const {
    const ValueId made = op(index).outputs[0];
    const std::size_t sum = only_reader(made, "add", op(index).phase);
    if (sum == kNone) return std::nullopt;
    const ValueId other = op(sum).inputs[op(sum).inputs[0] == made ? 1 : 0];
    if (maker_[other] >= index) return std::nullopt;  // includes kNone
    Fusion fusion{.op = op(index), .others = {sum}};
    fusion.op.kind = "gather_rows_backward_add";
    fusion.op.inputs.push_back(other);
    fusion.op.outputs = op(sum).outputs;
    if (readers_[other].size() == 1) put_in_place(fusion.op, {.output = 0, .input = 2});
    return fusion;
  }

  // A relu behind a batch normalisation is left out: one kernel computes the gradient of both.
  std::optional<Fusion> sum_of_gradients(std::size_t index) const {
    const ValueId made = op(index).outputs[0];
    const std::size_t relu = only_reader(made, "relu_backward", op(index).phase);
    if (relu == kNone || op(relu).inputs[1] != made) return std::nullopt;
    const std::optional<Fusion> other = backward(relu);
    if (other && other->op.kind == "batch_norm_relu_backward") return std::nullopt;
    Fusion fusion{.op = op(relu), .others = {relu}};
    fusion.op.inputs = {op(relu).inputs[0], op(index).inputs[0], op(index).inputs[1]};
    return fusion;
  }

  // If the probabilities are only used for the gradient, they need no memory and no pass of their
  // own.
  std::optional<Fusion> loss(std::size_t index) const {
    const std::size_t back =
        only_reader(op(index).outputs[1], "softmax_cross_entropy_backward", Phase::backward);
    if (back == kNone || op(back).inputs[1] != op(index).inputs[1]) return std::nullopt;
    Fusion fusion{.op = op(index), .others = {back}};
    fusion.op.kind = "softmax_cross_entropy_and_gradient";
    fusion.op.outputs[1] = op(back).outputs[0];
    return fusion;
  }

  const Program& program_;
  std::vector<std::size_t> maker_;                 // by value
  std::vector<std::vector<std::size_t>> readers_;  // by value; kNone: the host
  std::map<std::size_t, Fusion> found_;
};

}  // namespace

std::map<std::size_t, Fusion> fusions(const Program& program) { return Finder(program).find(); }

Program fuse(Program program, const std::function<bool(const Op&)>& has_kernel) {
  std::vector<bool> is_done(program.ops.size());
  for (auto& [index, fusion] : fusions(program)) {
    if (is_done[index] || !has_kernel(fusion.op)) continue;
    program.ops[index] = fusion.op;
    for (const std::size_t other : fusion.others) is_done[other] = true;
  }
  std::vector<Op> ops;
  for (std::size_t index = 0; index < program.ops.size(); ++index)
    if (!is_done[index]) ops.push_back(std::move(program.ops[index]));
  program.ops = std::move(ops);
  return program;
}

}  // namespace headroom
