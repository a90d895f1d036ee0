#include "strategies/checkpointing/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "harness/base/error.h"
#include "harness/program/recomputed.h"

namespace headroom::checkpointing {
namespace {

class Recomputation {
 public:
  Recomputation(Program program, const Regions& regions)
      : program_(std::move(program)),
        regions_(regions),
        forward_(program_.ops.begin(),
                 program_.ops.begin() + static_cast<std::ptrdiff_t>(regions.of_op.size())),
        home_(program_.values.size(), 0),
        now_(program_.values.size(), kNoValue),
        executed_(regions.around.size()) {
    executed_[0] = true;
  }

  Program run() {
    find_homes();
    std::vector<Op> backward(program_.ops.begin() + static_cast<std::ptrdiff_t>(forward_.size()),
                             program_.ops.end());
    program_.ops.resize(forward_.size());
    for (Op& op : backward) {
      for (ValueId& id : op.inputs) {
        if (id == kNoValue || home_[id] == 0) continue;
        execute(home_[id]);
        id = now_[id];
      }
      program_.ops.push_back(std::move(op));
    }
    return without_unread_repetitions(std::move(program_));
  }

 private:
  bool is_in(int region, int other) const {
    while (region != other && region != 0) region = regions_.around[region];
    return region == other;
  }

  int smallest_around(int a, int b) const {
    while (!is_in(b, a)) a = regions_.around[a];
    return a;
  }

  // Fills home_: the region whose execution makes the value for its later readers.
  void find_homes() {
    std::vector<bool> changed(program_.values.size());
    for (const Op& op : program_.ops)
      for (const ValueId id : op.mutates) changed[id] = true;
    for (std::size_t index = 0; index < forward_.size(); ++index) {
      const Op& op = forward_[index];
      repeatable_.push_back(op.mutates.empty() &&
                            std::none_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
                              return id != kNoValue && changed[id];
                            }));
      if (!repeatable_.back()) continue;
      const int region = regions_.of_op[index];
      for (const ValueId id : op.outputs) home_[id] = region;
      for (const ValueId id : op.inputs)
        if (id != kNoValue) home_[id] = smallest_around(home_[id], region);
    }
    for (const ValueId id : program_.results) home_[id] = 0;
  }

  // Executes whole regions; unused ops are removed in the end.
  void execute(int region) {
    if (executed_[region]) return;
    executed_[region] = true;
    execute(regions_.around[region]);
    std::map<ValueId, ValueId> made;
    const auto available = [&](ValueId id) {
      const auto found = made.find(id);
      if (found != made.end()) return found->second;
      return id == kNoValue || now_[id] == kNoValue ? id : now_[id];
    };
    for (std::size_t index = 0; index < forward_.size(); ++index) {
      const Op& op = forward_[index];
      if (!repeatable_[index] || !is_in(regions_.of_op[index], region)) continue;
      Op& again = repeat(program_, op);
      std::transform(op.inputs.begin(), op.inputs.end(), again.inputs.begin(), available);
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        if (is_in(home_[op.outputs[i]], region)) made[op.outputs[i]] = again.outputs[i];
    }
    for (const auto& [original, copy] : made)
      if (home_[original] == region) now_[original] = copy;
  }

  Program program_;
  const Regions& regions_;
  const std::vector<Op> forward_;
  std::vector<bool> repeatable_;  // by forward op
  std::vector<int> home_;         // by value; 0 if kept from the forward pass
  std::vector<ValueId> now_;      // by value: the recomputed copy that is alive
  std::vector<bool> executed_;    // by region
};

// "decoder.3.attention.query" -> "decoder.3".
std::string module_of(const std::string& name) {
  std::size_t end = name.find('.');
  const std::string first_part = name.substr(0, end);
  while (end != std::string::npos) {
    const std::size_t start = end + 1;
    end = name.find('.', start);
    const std::string part = name.substr(start, end == std::string::npos ? end : end - start);
    if (!part.empty() &&
        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
      return name.substr(0, end);
  }
  return first_part;
}

// For each value, whether it is made in the forward pass and read in the backward pass.
std::vector<bool> saved(const Program& program) {
  std::vector<bool> made(program.values.size()), result(program.values.size());
  for (const Op& op : program.ops) {
    if (op.phase == Phase::forward)
      for (const ValueId id : op.outputs) made[id] = true;
    if (op.phase == Phase::backward)
      for (const ValueId id : op.inputs)
        if (id != kNoValue && made[id]) result[id] = true;
  }
  return result;
}

}  // namespace

int Regions::add(int outer) {
  around.push_back(outer);
  return static_cast<int>(around.size()) - 1;
}

std::size_t forward_ops(const Program& program) {
  const auto first_other = std::find_if(program.ops.begin(), program.ops.end(),
                                        [](const Op& op) { return op.phase != Phase::forward; });
  if (std::any_of(first_other, program.ops.end(),
                  [](const Op& op) { return op.phase == Phase::forward; }))
    throw Error(
        fmt::format("program '{}': a forward op follows an op of another phase", program.name));
  return static_cast<std::size_t>(first_other - program.ops.begin());
}

Program recompute(Program program, const Regions& regions) {
  if (regions.of_op.size() != forward_ops(program))
    throw Error(fmt::format("program '{}' has {} forward ops, regions were made for {}",
                            program.name, forward_ops(program), regions.of_op.size()));
  return Recomputation(std::move(program), regions).run();
}

std::vector<Unit> units_of(const Program& program) {
  const std::vector<bool> is_saved = saved(program);
  const std::size_t count = forward_ops(program);
  std::vector<Unit> units;
  for (std::size_t first = 0; first < count;) {
    const std::string module = module_of(program.ops[first].name);
    std::size_t end = first;
    bool keeps = false;
    for (; end < count && module_of(program.ops[end].name) == module; ++end)
      for (const ValueId id : program.ops[end].outputs) keeps = keeps || is_saved[id];
    if (keeps) units.push_back({first, end});
    first = end;
  }
  return units;
}

Bytes saved_bytes(const Program& program) {
  const std::vector<bool> is_saved = saved(program);
  Bytes sum = 0;
  for (ValueId id = 0; id < program.values.size(); ++id)
    if (is_saved[id])
      sum += static_cast<Bytes>(element_count(program.value(id).shape)) *
             size_of(program.value(id).dtype);
  return sum;
}

Reason why_not_engaged(const Spec& spec, const Program& before, const Program& after) {
  if (recomputed_ops(after) == 0)
    return fmt::format("checkpointing={}: no op of '{}' is recomputed", spec.to_string(),
                       before.name);
  if (saved_bytes(after) >= saved_bytes(before))
    return fmt::format(
        "checkpointing={}: '{}' saves {} bytes for the backward pass, but {} without checkpointing",
        spec.to_string(), before.name, saved_bytes(after), saved_bytes(before));
  return std::nullopt;
}

}  // namespace headroom::checkpointing
