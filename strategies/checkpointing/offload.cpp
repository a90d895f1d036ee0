// What the backward pass will read leaves the device for memory of the host after its last use in
// the forward pass, and is back before its first one in the backward pass. Computes nothing again;
// costs two copies of each value and as many bytes of the host as it saves on the device. After
// Rhu et al. 2016, "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural
// Network Design"; PyTorch's torch.autograd.graph.save_on_cpu is this without prefetch.
//   prefetch=1  copied back so many ops before the first that reads it: what hides the copy on a
//               device that copies while it computes, and takes memory for so much longer
//   share=1     of the bytes kept for the backward pass, those made first, which wait longest
// What would be back before the backward pass begins stays: that is the last to be made.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/offload.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/held.h"
#include "strategies/checkpointing/regions.h"

namespace headroom {
namespace {

constexpr std::size_t kNever = ~std::size_t{0};

struct Options {
  std::size_t prefetch;
  double share;
};

Options read_options(const Spec& spec) {
  const std::int64_t prefetch = spec.integer("prefetch", 1);
  const double share = spec.number("share", 1);
  if (prefetch < 0)
    throw InputError(
        fmt::format("{}: prefetch counts ops and must not be negative", spec.to_string()));
  if (!(share > 0 && share <= 1))
    throw InputError(fmt::format("{}: share must be above 0 and at most 1", spec.to_string()));
  return {.prefetch = static_cast<std::size_t>(prefetch), .share = share};
}

// Where a value that is kept for the backward pass leaves, and where it comes back.
struct Journey {
  ValueId value;
  std::size_t after;   // op
  std::size_t before;  // op
};

// Of every value that is made in the forward pass, read in the backward pass and never changed, in
// the order they are made in.
std::vector<Journey> journeys(const Program& program, std::size_t prefetch) {
  const std::size_t forward = checkpointing::forward_ops(program);
  std::vector<std::size_t> last_use(program.values.size(), kNever);
  std::vector<std::size_t> first_read(program.values.size(), kNever);
  std::vector<bool> stays(program.values.size());
  for (const ValueId id : program.results) stays[id] = true;
  std::vector<ValueId> made;
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    for (const ValueId id : op.mutates) stays[id] = true;
    for (const ValueId id : op.inputs) {
      if (id == kNoValue) continue;
      if (index < forward) last_use[id] = index;
      if (index >= forward) first_read[id] = std::min(first_read[id], index);
    }
    if (index >= forward) continue;
    for (const ValueId id : op.outputs) last_use[id] = index;
    made.insert(made.end(), op.outputs.begin(), op.outputs.end());
  }
  std::vector<Journey> result;
  for (const ValueId id : made)
    if (first_read[id] != kNever && !stays[id])
      result.push_back({id, last_use[id], first_read[id] - std::min(first_read[id], prefetch)});
  return result;
}

// Those of the first share of bytes that are away while the backward pass begins.
std::vector<Journey> chosen(const Program& program, const Options& options) {
  std::vector<Journey> all = journeys(program, options.prefetch);
  double kept = 0;
  for (const Journey& one : all)
    kept += static_cast<double>(checkpointing::plain_bytes(program.value(one.value)));
  double taken = 0;
  std::vector<Journey> result;
  for (const Journey& one : all) {
    if (taken >= options.share * kept) break;
    taken += static_cast<double>(checkpointing::plain_bytes(program.value(one.value)));
    if (one.before > checkpointing::forward_ops(program)) result.push_back(one);
  }
  return result;
}

// Appends a copy of `value`, which becomes the copy.
void emit_copy(Program& program, const char* kind, Phase phase, ValueId original, ValueId& value) {
  ProgramBuilder builder(program, phase);
  value = builder.emit_one(kind, fmt::format("{}.{}", program.value(original).name, kind), {value});
}

Program apply_offload(Program program, const Spec& spec) {
  const std::vector<Journey> all = chosen(program, read_options(spec));
  const std::vector<Op> ops = std::exchange(program.ops, {});
  const std::size_t forward = static_cast<std::size_t>(std::count_if(
      ops.begin(), ops.end(), [](const Op& op) { return op.phase == Phase::forward; }));
  std::vector<std::vector<ValueId>> leaving(ops.size()), returning(ops.size());
  for (const Journey& one : all) {
    leaving[one.after].push_back(one.value);
    returning[one.before].push_back(one.value);
  }
  std::vector<ValueId> now(program.values.size());  // by value: what stands for it
  for (ValueId id = 0; id < now.size(); ++id) now[id] = id;
  for (std::size_t index = 0; index < ops.size(); ++index) {
    for (const ValueId id : returning[index])
      emit_copy(program, "copy_in", ops[index].phase, id, now[id]);
    program.ops.push_back(ops[index]);
    if (index >= forward)
      for (ValueId& id : program.ops.back().inputs)
        if (id != kNoValue) id = now[id];
    for (const ValueId id : leaving[index])
      emit_copy(program, "copy_out", Phase::forward, id, now[id]);
  }
  return program;
}

std::string why_not_engaged(const Spec& spec, const Program& before, const Program& after) {
  if (std::any_of(after.ops.begin(), after.ops.end(), is_transfer)) return "";
  return fmt::format("checkpointing={}: nothing of '{}' leaves the device", spec.to_string(),
                     before.name);
}

const bool registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "offload",
     .summary =
         "copies what the backward pass will read to memory of the host and back, prefetch= "
         "ops ahead; share= of the bytes; saves them on the device, takes as many of the host",
     .parameters = {"prefetch", "share"},
     .examples = {"offload", "offload(prefetch=20)", "offload(share=0.5)"},
     .apply = apply_offload,
     .why_not_engaged = why_not_engaged});

}  // namespace
}  // namespace headroom
