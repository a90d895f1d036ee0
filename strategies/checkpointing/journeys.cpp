#include "strategies/checkpointing/journeys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/error.h"
#include "harness/program/offload.h"
#include "harness/program/recomputed.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {
namespace {

constexpr std::size_t kNever = ~std::size_t{0};

// Appends a copy of `value`, and sets `value` to the copy.
void emit_copy(Program& program, const char* kind, Phase phase, ValueId original, ValueId& value) {
  ProgramBuilder builder(program, phase);
  value = builder.emit_one(kind, fmt::format("{}.{}", program.value(original).name, kind), {value});
}

// For each op, returns the first op after its stretch.
std::vector<std::size_t> ends_of_stretches(const Program& program) {
  const std::size_t forward = forward_ops(program);
  std::vector<std::size_t> ends(program.ops.size(), forward);
  for (std::size_t index = program.ops.size(); index-- > forward;) {
    const bool goes_on = index + 1 < program.ops.size() && is_recomputed(program.ops[index]) &&
                         is_recomputed(program.ops[index + 1]);
    ends[index] = goes_on ? ends[index + 1] : index + 1;
  }
  return ends;
}

}  // namespace

bool keeps_on_host(const Spec& spec) {
  const std::string keep = spec.text("keep", "device");
  if (keep != "device" && keep != "host")
    throw InputError(
        fmt::format("{}: keep must be device or host, not '{}'", spec.to_string(), keep));
  if (keep == "device" && spec.has("prefetch"))
    throw InputError(
        fmt::format("{}: values kept on the device are not prefetched; leave out "
                    "prefetch, or use keep=host",
                    spec.to_string()));
  return keep == "host";
}

std::vector<Journey> journeys(const Program& program, std::size_t prefetch) {
  const std::size_t forward = forward_ops(program);
  const std::vector<std::size_t> ends = ends_of_stretches(program);
  std::vector<std::size_t> behind(program.values.size(), 0);  // first op after the value's stretch
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
      if (index < behind[id]) last_use[id] = index;
      if (index >= behind[id]) first_read[id] = std::min(first_read[id], index);
    }
    if (index >= forward && !is_recomputed(op)) continue;
    for (const ValueId id : op.outputs) {
      last_use[id] = index;
      behind[id] = ends[index];
    }
    made.insert(made.end(), op.outputs.begin(), op.outputs.end());
  }
  std::vector<Journey> result;
  for (const ValueId id : made)
    if (first_read[id] != kNever && !stays[id])
      result.push_back(
          {id, last_use[id], first_read[id] - std::min(first_read[id], prefetch), behind[id]});
  return result;
}

bool is_worth_it(const Journey& journey) { return journey.before > journey.behind; }

Program take(Program program, const std::vector<Journey>& journeys) {
  const std::size_t forward = forward_ops(program);
  const std::vector<Op> ops = std::exchange(program.ops, {});
  std::vector<std::vector<ValueId>> leaving(ops.size()), returning(ops.size());
  for (const Journey& one : journeys) {
    leaving[one.after].push_back(one.value);
    returning[one.before].push_back(one.value);
  }
  std::vector<ValueId> now(program.values.size());  // the current copy of each value
  for (ValueId id = 0; id < now.size(); ++id) now[id] = id;
  for (std::size_t index = 0; index < ops.size(); ++index) {
    for (const ValueId id : returning[index])
      emit_copy(program, "copy_in", ops[index].phase, id, now[id]);
    program.ops.push_back(ops[index]);
    if (index >= forward)
      for (ValueId& id : program.ops.back().inputs)
        if (id != kNoValue) id = now[id];
    for (const ValueId id : leaving[index])
      emit_copy(program, "copy_out", ops[index].phase, id, now[id]);
  }
  return program;
}

std::size_t prefetch_of(const Spec& spec) {
  const std::int64_t prefetch = spec.integer("prefetch", 1);
  if (prefetch < 0)
    throw InputError(
        fmt::format("{}: prefetch counts ops and must not be negative", spec.to_string()));
  return static_cast<std::size_t>(prefetch);
}

Program keep_where_asked(Program program, const Spec& spec) {
  if (!keeps_on_host(spec)) return program;
  // The last op that recomputes something from each value.
  std::vector<std::size_t> last_start(program.values.size(), 0);
  for (std::size_t index = 0; index < program.ops.size(); ++index)
    if (is_recomputed(program.ops[index]))
      for (const ValueId id : program.ops[index].inputs)
        if (id != kNoValue) last_start[id] = index;
  std::vector<Journey> all = journeys(program, prefetch_of(spec));
  std::erase_if(all, [&](const Journey& one) {
    return last_start[one.value] < one.behind || !is_worth_it(one);
  });
  return take(std::move(program), all);
}

Reason why_not_kept_there(const Spec& spec, const Program& after) {
  if (!keeps_on_host(spec) || std::any_of(after.ops.begin(), after.ops.end(), is_transfer))
    return std::nullopt;
  return fmt::format("checkpointing={}: no kept value of '{}' leaves the device", spec.to_string(),
                     after.name);
}

}  // namespace headroom::checkpointing
