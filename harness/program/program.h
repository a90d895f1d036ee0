// The training step as data: a list of ops over values. Workloads build it, passes rewrite it,
// lower() makes it concrete, the Executor runs it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/program/op.h"
#include "harness/program/value.h"

namespace headroom {

struct Program {
  std::string name;  // "train", "evaluate"
  std::vector<Value> values = {};
  std::vector<Op> ops = {};
  std::vector<ValueId> inputs = {};   // fed by the pipeline, in order
  std::vector<ValueId> results = {};  // copied to the host after the step: loss first
  ValueId loss = kNoValue;
  // Weights that are used but not trained here: no gradient is computed for them.
  std::vector<ValueId> frozen = {};
  // The phase that traces and ledgers show for every op of this Program; unset: the op's own phase.
  std::optional<Phase> phase = std::nullopt;
  // weight → its gradient; filled by differentiate(), read by optimizer passes.
  std::vector<std::pair<ValueId, ValueId>> gradients = {};
  std::string rules = {};  // set by lower(), whole: "dense", "onednn(2.6.3,avx512_core_bf16,…)"

  const Value& value(ValueId id) const { return values.at(id); }
  ValueId find(std::string_view value_name) const;  // kNoValue when absent
};

// Adds values and ops; infers shapes; throws Error naming the op when operands do not fit.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program, Phase phase = Phase::forward);

  ValueId input(std::string name, Shape shape, DType dtype);
  ValueId persistent(std::string name, Shape shape, Role role, Initializer initializer);
  // Appends an op of `kind` and returns its outputs, named `name` (`name:1`, … after the first).
  std::vector<ValueId> emit(std::string kind, std::string name, std::vector<ValueId> inputs,
                            Attributes attributes = {}, std::vector<ValueId> mutates = {});
  // Like emit, for an op with one output.
  ValueId emit_one(std::string kind, std::string name, std::vector<ValueId> inputs,
                   Attributes attributes = {});

  Program& program() { return program_; }
  void set_phase(Phase phase) { phase_ = phase; }

 private:
  Program& program_;
  Phase phase_;
};

// forward + loss → forward + backward. Gradients reach every persistent value of role weight that
// is not frozen; several uses of one value are summed. The loss may be a sum of losses (kind add).
// Throws Error when program.loss is not set or a kind on the path has no backward rule.
Program differentiate(Program forward);

// For each op i, result[i] lists the transient values that are freed after it, at their last use.
// Results are never freed, an unread output is freed right after its op, an unread input after the
// first op, and a workspace with its op. Passes may lengthen lifetimes later.
std::vector<std::vector<ValueId>> last_uses(const Program& program);

// The maximum over ops of the bytes of live values (persistent ones included), counting outputs and
// workspace of the running op: a lower bound for every allocator. Needs a lowered Program.
Bytes peak_live_bytes(const Program& lowered);
// The same for Programs that run one after another and share their persistent values by name.
Bytes peak_live_bytes(std::span<const Program* const> sharing);

// Floating-point operations of one execution, counting convolutions and matrix products only, as
// published counts do.
double total_flops(const Program& program);

// Checks the invariants of every pass: ids in range, each value produced once before its use,
// unique persistent names. Throws Error.
void validate(const Program& program);

}  // namespace headroom
