#include "strategies/execution/order.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>

#include "harness/program/offload.h"
#include "harness/program/recomputed.h"

namespace headroom::execution {
namespace {

// Ops that recompute or copy back a value are ready long before it is needed.
bool waits_for_its_turn(const Op& op) { return is_recomputed(op) || op.kind == "copy_in"; }

using Ops = std::vector<std::size_t>;  // by their places in the built order

// For each op, the ops it waits for.
std::vector<std::set<std::size_t>> dependencies(const Program& program) {
  constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::set<std::size_t>> waits(program.ops.size());
  std::vector<std::size_t> written(program.values.size(), kNone);
  std::vector<Ops> read(program.values.size());  // readers since the last change, by value
  std::size_t computed = kNone;  // the last op that neither recomputes nor copies back
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    for (const ValueId id : op.inputs) {
      if (id == kNoValue) continue;
      if (written[id] != kNone) waits[index].insert(written[id]);
      read[id].push_back(index);
    }
    for (const ValueId id : op.mutates) {
      waits[index].insert(read[id].begin(), read[id].end());
      read[id].clear();
      written[id] = index;
    }
    for (const ValueId id : op.outputs) written[id] = index;
    if (!waits_for_its_turn(op))
      computed = index;
    else if (computed != kNone)
      waits[index].insert(computed);
    waits[index].erase(index);
  }
  return waits;
}

// Bytes of transient values, followed op by op.
class Ledger {
 public:
  explicit Ledger(const Program& program)
      : program_(program), on_host_(kept_on_host(program)), readers_(program.values.size()) {
    for (const Op& op : program.ops) {
      std::set<ValueId> once(op.inputs.begin(), op.inputs.end());
      once.erase(kNoValue);
      for (const ValueId id : once) ++readers_[id];
      operands_.emplace_back(once.begin(), once.end());
    }
    for (const ValueId id : program.results) ++readers_[id];  // never freed
    for (ValueId id = 0; id < program.values.size(); ++id)
      if (program.value(id).persistent) ++readers_[id];
  }

  // The change in live bytes after the op.
  std::int64_t growth(std::size_t op) const {
    std::int64_t bytes = 0;
    for (const ValueId id : program_.ops[op].outputs)
      if (readers_[id] > 0) bytes += bytes_of(id);
    for (const ValueId id : operands_[op])
      if (readers_[id] == 1) bytes -= bytes_of(id);
    return bytes;
  }
  void run(std::size_t op) {
    for (const ValueId id : operands_[op]) --readers_[id];
  }

 private:
  std::int64_t bytes_of(ValueId id) const {
    return on_host_[id] ? 0 : static_cast<std::int64_t>(program_.value(id).bytes);
  }

  const Program& program_;
  std::vector<bool> on_host_;                   // by value: offloaded
  std::vector<std::vector<ValueId>> operands_;  // of each op, each once
  std::vector<std::size_t> readers_;            // number of readers to come, by value
};

Ops schedule(const Program& program, Order order) {
  const auto waits = dependencies(program);
  std::vector<Ops> followers(program.ops.size());
  std::vector<std::size_t> missing(program.ops.size());
  std::deque<std::size_t> ready;
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    for (const std::size_t before : waits[index]) followers[before].push_back(index);
    missing[index] = waits[index].size();
    if (missing[index] == 0) ready.push_back(index);
  }
  Ledger ledger(program);
  const auto better = [&](std::size_t a, std::size_t b) {
    const std::int64_t growth_a = ledger.growth(a);
    const std::int64_t growth_b = ledger.growth(b);
    return growth_a != growth_b ? growth_a < growth_b : a < b;
  };
  Ops result;
  while (!ready.empty()) {
    const auto next = order == Order::memory ? std::min_element(ready.begin(), ready.end(), better)
                                             : ready.begin();
    const std::size_t index = *next;
    ready.erase(next);
    ledger.run(index);
    result.push_back(index);
    Ops woken;
    for (const std::size_t follower : followers[index])
      if (--missing[follower] == 0) woken.push_back(follower);
    ready.insert(order == Order::depth_first ? ready.begin() : ready.end(), woken.begin(),
                 woken.end());
  }
  return result;
}

}  // namespace

Program reorder(Program lowered, Order order) {
  std::vector<Op> ops;
  for (const std::size_t index : schedule(lowered, order))
    ops.push_back(std::move(lowered.ops[index]));
  lowered.ops = std::move(ops);
  return lowered;
}

}  // namespace headroom::execution
