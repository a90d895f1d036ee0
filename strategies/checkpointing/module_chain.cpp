#include "strategies/checkpointing/module_chain.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/base/registry.h"
#include "strategies/checkpointing/held.h"

namespace headroom::checkpointing {
namespace {

constexpr std::size_t kNoOp = ~std::size_t{0};

Work work_of(const Program& program, const Op& op) {
  Work work;
  const auto operands = [&](const std::vector<ValueId>& ids) {
    std::vector<Value> values;
    for (const ValueId id : ids) {
      if (id == kNoValue) continue;
      values.push_back(program.value(id));
      work.touched += plain_bytes(values.back());
    }
    return values;
  };
  const std::vector<Value> inputs = operands(op.inputs), outputs = operands(op.outputs);
  const auto& definition = Registry<OpDefinition>::instance().find(op.kind);
  if (definition.flops) work.flops = definition.flops(op, inputs, outputs);
  return work;
}

class Facts {
 public:
  Facts(const Program& program, const std::vector<Unit>& units)
      : program_(program),
        unit_of_(forward_ops(program), kNoOp),
        maker_(program.values.size(), kNoOp),
        first_reader_(program.values.size(), kNoOp),
        last_reader_(program.values.size(), kNoOp),
        first_elsewhere_(program.values.size(), kNoOp),
        backward_reads_(program.values.size()),
        leaves_(program.values.size()) {
    const std::size_t forward = forward_ops(program);
    for (std::size_t unit = 0; unit < units.size(); ++unit)
      std::fill(unit_of_.begin() + static_cast<std::ptrdiff_t>(units[unit].first),
                unit_of_.begin() + static_cast<std::ptrdiff_t>(units[unit].end), unit);
    std::vector<bool> changed(program.values.size());
    for (const Op& op : program.ops)
      for (const ValueId id : op.mutates) changed[id] = true;
    for (std::size_t index = 0; index < forward; ++index) {
      note_forward(index, changed);
      work_.push_back(work_of(program, program.ops[index]));
    }
    for (std::size_t index = forward; index < program.ops.size(); ++index)
      for (const ValueId id : program.ops[index].inputs)
        if (id != kNoValue && maker_[id] != kNoOp) backward_reads_[id].push_back(index);
    for (const ValueId id : program.results) leaves_[id] = true;
  }

  Segment kept(const Unit& unit) const {
    Segment segment;
    for (std::size_t index = unit.first; index < unit.end; ++index)
      for (const ValueId id : program_.ops[index].outputs) segment.kept += saved(id);
    return segment;
  }

  Segment recomputed(const Unit& all) const;

  // The segments of Keep::on_host.
  Segment kept_beside_host(const Unit& unit) const;
  Segment recomputed_from_host(const Unit& all) const;

 private:
  void note_forward(std::size_t index, const std::vector<bool>& changed) {
    const Op& op = program_.ops[index];
    const bool repeatable = op.mutates.empty() &&
                            std::none_of(op.inputs.begin(), op.inputs.end(),
                                         [&](ValueId id) { return id != kNoValue && changed[id]; });
    for (const ValueId id : op.outputs) {
      maker_[id] = index;
      leaves_[id] = !repeatable;
    }
    if (!repeatable) return;
    for (const ValueId id : op.inputs) {
      if (id == kNoValue) continue;
      first_reader_[id] = std::min(first_reader_[id], index);
      last_reader_[id] = last_reader_[id] == kNoOp ? index : std::max(last_reader_[id], index);
      if (maker_[id] != kNoOp && unit_of_[index] != kNoOp &&
          unit_of_[maker_[id]] != unit_of_[index])
        first_elsewhere_[id] = std::min(first_elsewhere_[id], index);
    }
  }

  // The bytes of the value; 0 if the backward pass does not read it.
  Bytes saved(ValueId id) const {
    return backward_reads_[id].empty() ? 0 : plain_bytes(program_.value(id));
  }
  bool is_made_in(ValueId id, const Unit& all) const {
    return maker_[id] != kNoOp && maker_[id] >= all.first && maker_[id] < all.end;
  }
  // Whether the value is dropped after use and recomputed.
  bool is_dropped_in(ValueId id, const Unit& all) const {
    return is_made_in(id, all) && !leaves_[id] &&
           (last_reader_[id] == kNoOp || last_reader_[id] < all.end);
  }
  std::vector<std::size_t> recomputed_ops(const Unit& all) const;
  std::size_t trigger(const Unit& all) const;
  // Whether a kept value of the unit is counted with it, not with the first module that reads it.
  bool counts_with_maker(ValueId id, const Unit& all) const {
    return leaves_[id] || first_elsewhere_[id] == kNoOp || first_elsewhere_[id] < all.end;
  }
  std::set<ValueId> first_read_in(const Unit& all) const;

  const Program& program_;
  std::vector<std::size_t> unit_of_;  // by forward op; kNoOp where the module keeps nothing
  std::vector<std::size_t> maker_, first_reader_, last_reader_;  // forward ops, by value
  std::vector<std::size_t> first_elsewhere_;              // first reader in another unit, by value
  std::vector<std::vector<std::size_t>> backward_reads_;  // backward ops, by value
  // Whether no region drops the value, because it is a result or its op cannot be repeated.
  std::vector<bool> leaves_;
  std::vector<Work> work_;  // by forward op
};

// Returns, in order, the ops that lead to values which the backward pass reads but are not kept.
std::vector<std::size_t> Facts::recomputed_ops(const Unit& all) const {
  std::vector<std::size_t> ops;
  std::vector<bool> needed(all.end - all.first);
  for (std::size_t index = all.end; index-- > all.first;) {
    const Op& op = program_.ops[index];
    for (const ValueId id : op.outputs)
      if (is_dropped_in(id, all) && saved(id) > 0) needed[index - all.first] = true;
    if (!needed[index - all.first]) continue;
    ops.push_back(index);
    for (const ValueId id : op.inputs)
      if (id != kNoValue && is_dropped_in(id, all)) needed[maker_[id] - all.first] = true;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

// A segment is recomputed as a whole when the backward pass first reads a value that it dropped. At
// that time all values kept before it are alive, except those whose last reader has already run.
Segment Facts::recomputed(const Unit& all) const {
  Segment segment{.again = true};
  const std::vector<std::size_t> ops = recomputed_ops(all);
  const std::size_t start = trigger(all);
  std::set<ValueId> around;  // kept values, some of which may be freed on the way
  std::set<ValueId> read;    // values kept for this segment only
  for (std::size_t index = all.first; index < all.end; ++index)
    for (const ValueId id : program_.ops[index].outputs) {
      if (saved(id) == 0 || is_dropped_in(id, all)) continue;
      segment.kept += saved(id);
      around.insert(id);
    }
  // The last position in `ops` that reads the value, from 1.
  std::map<ValueId, std::size_t> last_needed;
  for (std::size_t position = 0; position < ops.size(); ++position) {
    const Op& op = program_.ops[ops[position]];
    segment.work += work_[ops[position]];
    for (const ValueId id : op.inputs) {
      if (id == kNoValue || maker_[id] == kNoOp || is_dropped_in(id, all)) continue;
      last_needed[id] = position + 1;
      // An earlier segment that also reads the value may still need it.
      if (is_made_in(id, all) || first_reader_[id] >= all.first) around.insert(id);
      if (saved(id) == 0 && read.insert(id).second) segment.kept += plain_bytes(program_.value(id));
    }
  }
  Bytes made = 0;
  for (std::size_t position = 0; position < ops.size(); ++position) {
    for (const ValueId id : program_.ops[ops[position]].outputs)
      if (is_dropped_in(id, all)) made += saved(id);
    Bytes dead = 0;
    for (const ValueId id : around)
      if (last_needed[id] < position + 1 &&
          (backward_reads_[id].empty() || backward_reads_[id].back() < start))
        dead += plain_bytes(program_.value(id));
    if (made > dead) segment.inside = std::max(segment.inside, made - dead);
  }
  return segment;
}

// The first backward op that reads a recomputed value.
std::size_t Facts::trigger(const Unit& all) const {
  std::size_t first = kNoOp;
  for (std::size_t index = all.first; index < all.end; ++index)
    for (const ValueId id : program_.ops[index].outputs)
      if (saved(id) > 0 && is_dropped_in(id, all))
        first = std::min(first, backward_reads_[id].front());
  return first;
}

// Returns the values of earlier modules that no module in between reads.
std::set<ValueId> Facts::first_read_in(const Unit& all) const {
  std::set<ValueId> result;
  for (std::size_t index = all.first; index < all.end; ++index)
    for (const ValueId id : program_.ops[index].inputs)
      if (id != kNoValue && maker_[id] != kNoOp && maker_[id] < all.first && !leaves_[id] &&
          first_elsewhere_[id] >= all.first && first_elsewhere_[id] < all.end)
        result.insert(id);
  return result;
}

Segment Facts::kept_beside_host(const Unit& unit) const {
  Segment segment;
  for (std::size_t index = unit.first; index < unit.end; ++index)
    for (const ValueId id : program_.ops[index].outputs)
      if (counts_with_maker(id, unit)) segment.kept += saved(id);
  for (const ValueId id : first_read_in(unit)) segment.kept += saved(id);
  return segment;
}

Segment Facts::recomputed_from_host(const Unit& all) const {
  Segment segment{.again = true};
  const std::vector<std::size_t> ops = recomputed_ops(all);
  const std::size_t start = trigger(all);
  const auto is_read_from = [&](ValueId id) {
    return !backward_reads_[id].empty() && backward_reads_[id].back() >= start;
  };
  // The first and last position in `ops` that read the value, from 1.
  std::map<ValueId, std::pair<std::size_t, std::size_t>> needed;
  for (std::size_t position = 1; position <= ops.size(); ++position) {
    segment.work += work_[ops[position - 1]];
    for (const ValueId id : program_.ops[ops[position - 1]].inputs)
      if (id != kNoValue)
        needed.try_emplace(id, position, position).first->second.second = position;
  }
  Bytes beside = 0;  // bytes made here, counted with a later module and not yet read
  Bytes dead = 0;    // bytes of kept values that are no longer needed
  for (std::size_t index = all.first; index < all.end; ++index)
    for (const ValueId id : program_.ops[index].outputs) {
      if (saved(id) == 0 || is_dropped_in(id, all)) continue;
      if (counts_with_maker(id, all)) {
        segment.kept += saved(id);
        if (!is_read_from(id)) dead += saved(id);
      } else if (is_read_from(id)) {
        beside += saved(id);
      }
    }
  std::vector<ValueId> origins;
  for (const ValueId id : first_read_in(all)) {
    if (needed.contains(id))
      origins.push_back(id);
    else
      segment.kept += saved(id);
  }
  Bytes made = 0;
  for (std::size_t position = 1; position <= ops.size(); ++position) {
    for (const ValueId id : program_.ops[ops[position - 1]].outputs)
      if (is_dropped_in(id, all)) made += saved(id);
    Bytes here = made + beside;
    for (const ValueId id : origins) {
      const auto [first, last] = needed.at(id);
      const bool is_back = first <= position ||
                           (!backward_reads_[id].empty() && backward_reads_[id].front() < start);
      if (is_back && (last >= position || is_read_from(id)))
        here += plain_bytes(program_.value(id));
    }
    segment.inside = std::max(segment.inside, here - std::min(here, dead));
  }
  return segment;
}

}  // namespace

Chain chain_of(const Program& program, const std::vector<Unit>& units, Keep keep) {
  const Facts facts(program, units);
  const bool on_host = keep == Keep::on_host;
  Chain chain{.modules = units.size(), .segments = {}};
  const auto add = [&](std::size_t first, std::size_t end, Segment segment) {
    segment.first = first;
    segment.end = end;
    chain.segments.push_back(segment);
  };
  for (std::size_t first = 0; first < units.size(); ++first) {
    add(first, first + 1,
        on_host ? facts.kept_beside_host(units[first]) : facts.kept(units[first]));
    for (std::size_t end = first + 1; end <= units.size(); ++end) {
      const Unit all{units[first].first, units[end - 1].end};
      add(first, end, on_host ? facts.recomputed_from_host(all) : facts.recomputed(all));
    }
  }
  return chain;
}

}  // namespace headroom::checkpointing
