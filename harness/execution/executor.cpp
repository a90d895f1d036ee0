#include "harness/execution/executor.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/control/injection.h"
#include "harness/program/offload.h"

namespace headroom {

Executor::Executor(const Program& lowered, CompiledProgram* compute, Allocator& allocator,
                   TraceRecorder& recorder, const PersistentBlocks& persistent,
                   Injection* injection, std::uint32_t first_op, Allocator* host_side)
    : program_(lowered),
      compute_(compute),
      allocator_(allocator),
      recorder_(recorder),
      first_op_(first_op),
      frees_(last_uses(lowered)),
      blocks_(lowered.values.size()),
      held_(lowered.values.size(), false),
      on_host_(kept_on_host(lowered)),
      injection_(injection),
      host_side_(host_side) {
  if (host_side == nullptr && std::count(on_host_.begin(), on_host_.end(), true) > 0)
    throw Error("program '" + lowered.name + "' offloads values, and there is no memory for them");
  std::size_t most_inputs = 0;
  std::size_t most_outputs = 0;
  for (const Op& op : lowered.ops) {
    most_inputs = std::max(most_inputs, op.inputs.size());
    most_outputs = std::max(most_outputs, op.outputs.size());
    in_place_.push_back(in_place(op));
  }
  inputs_.resize(most_inputs);
  outputs_.resize(most_outputs);
  for (ValueId id = 0; id < lowered.values.size(); ++id) {
    const Value& value = lowered.value(id);
    if (!value.persistent) continue;
    const auto found = persistent.find(value.name);
    if (found == persistent.end())
      throw Error("the Program uses '" + value.name + "', which has no memory");
    blocks_[id] = found->second;
  }
}

Executor::~Executor() { release_ahead(); }

void Executor::run(const Transfer& feed, const Transfer& read, const std::function<void()>& fed) {
  try {
    recorder_.enter_op(kNoOp, Phase::load, recorder_.elapsed_ns());
    take_inputs(feed);
    if (fed) fed();
    for (std::size_t index = 0; index < program_.ops.size(); ++index) run_op(index);
    recorder_.enter_op(kNoOp, Phase::load, recorder_.elapsed_ns());
    for (const ValueId id : program_.results) read(id, blocks_[id].data);
    release_all();
  } catch (...) {
    release_all();
    throw;
  }
}

void Executor::take_inputs(const Transfer& feed) {
  hint_ = {.phase = Phase::load};
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const ValueId id = program_.inputs[i];
    if (!ahead_.empty()) {
      blocks_[id] = ahead_[i];
      held_[id] = true;
      continue;
    }
    hint_.name = program_.value(id).name;
    allocate(id);
    feed(id, blocks_[id].data);
  }
  ahead_.clear();
}

void Executor::feed_ahead(const Transfer& feed) {
  recorder_.enter_op(kNoOp, Phase::load, recorder_.elapsed_ns());
  try {
    for (const ValueId id : program_.inputs) {
      const Value& value = program_.value(id);
      ahead_.push_back(allocator_.allocate(
          value.bytes, {.role = value.role, .phase = Phase::load, .name = value.name}));
    }
  } catch (...) {
    release_ahead();
    throw;
  }
  for (std::size_t i = 0; i < ahead_.size(); ++i) feed(program_.inputs[i], ahead_[i].data);
}

void Executor::release_ahead() {
  for (const Block& block : ahead_) allocator_.deallocate(block);
  ahead_.clear();
}

void Executor::run_op(std::size_t index) {
  const Op& op = program_.ops[index];
  const Phase phase = program_.phase.value_or(op.phase);
  const std::uint32_t number = first_op_ + static_cast<std::uint32_t>(index);
  recorder_.enter_op(number, phase, recorder_.elapsed_ns());
  hint_ = {.phase = phase, .op = number, .name = op.name};
  const auto& places = in_place_[index];
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    if (places && places->output == i)
      hand_over(op.inputs[places->input], op.outputs[i]);
    else
      allocate(op.outputs[i]);
  if (op.workspace != kNoValue) allocate(op.workspace);
  if (compute_ != nullptr) {
    const auto data_of = [this](ValueId id) { return id == kNoValue ? nullptr : blocks_[id].data; };
    std::transform(op.inputs.begin(), op.inputs.end(), inputs_.begin(), data_of);
    std::transform(op.outputs.begin(), op.outputs.end(), outputs_.begin(), data_of);
    compute_->run(index, {.inputs = {inputs_.data(), op.inputs.size()},
                          .outputs = {outputs_.data(), op.outputs.size()},
                          .workspace = data_of(op.workspace)});
  }
  if (injection_ != nullptr) injection_->after_op();
  if (op.workspace != kNoValue) release(op.workspace);
  for (const ValueId id : frees_[index]) release(id);
}

void Executor::allocate(ValueId id) {
  const Value& value = program_.value(id);
  hint_.role = value.role;
  blocks_[id] = memory_of(id).allocate(value.bytes, hint_);
  held_[id] = true;
}

void Executor::hand_over(ValueId from, ValueId to) {
  blocks_[to] = blocks_[from];
  held_[to] = true;
  held_[from] = false;
}

void Executor::release(ValueId id) {
  if (!held_[id]) return;
  held_[id] = false;
  memory_of(id).deallocate(blocks_[id]);
}

void Executor::release_all() {
  for (ValueId id = 0; id < held_.size(); ++id) release(id);
}

}  // namespace headroom
