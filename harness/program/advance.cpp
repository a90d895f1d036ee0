#include "harness/program/advance.h"

#include <algorithm>
#include <numeric>

namespace headroom {

Program advance(Program program, const std::function<bool(const Op&)>& moves) {
  // The new place of each op: the number of the unmoved op that it follows; -1: before all ops.
  using Place = std::ptrdiff_t;
  std::vector<Place> place(program.ops.size());
  std::vector<Place> written(program.values.size(), -1), touched(program.values.size(), -1);
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    place[index] = static_cast<Place>(index);
    if (moves(op)) {
      place[index] = -1;
      for (const ValueId id : op.inputs)
        if (id != kNoValue) place[index] = std::max(place[index], written[id]);
      for (const ValueId id : op.mutates) place[index] = std::max(place[index], touched[id]);
    }
    const auto touch = [&](std::vector<Place>& last, ValueId id) {
      if (id != kNoValue) last[id] = std::max(last[id], place[index]);
    };
    for (const ValueId id : op.inputs) touch(touched, id);
    for (const auto* ids : {&op.outputs, &op.mutates})
      for (const ValueId id : *ids) {
        touch(written, id);
        touch(touched, id);
      }
  }
  std::vector<std::size_t> order(program.ops.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place[a] < place[b]; });
  std::vector<Op> ops;
  for (const std::size_t index : order) ops.push_back(std::move(program.ops[index]));
  program.ops = std::move(ops);
  return program;
}

}  // namespace headroom
