// Uses what a graph knows of a step before it runs: the last reader of each value, and which ops
// are independent. Values are freed after their last use (as in last_use); a result is written over
// an operand that dies with its op (buffer forwarding in TensorFlow's runtime, in-place sharing in
// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"); and the ops may run in
// another order. Costs nothing while training: the same ops compute the same numbers.
//   inplace=on|off
//   order=built          as the workload and the passes wrote it down (default)
//   order=depth_first    follows a branch to its end
//   order=breadth_first  takes turns among branches, as an executor with a queue of ready ops does;
//                        what is made early waits for the rest
//   order=memory         greedy: the op that leaves least memory taken, without looking ahead, so
//                        that the peak may rise too
// In any order but the built one, a weight may be updated as soon as its gradient is complete and
// nothing reads the weight any more, as with optimizer step=in_backward; this usually causes most
// of the reduction of the peak. Fusion is not part of this: lower() decides what is one op.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/error.h"
#include "harness/program/in_place.h"
#include "harness/program/pass.h"
#include "strategies/execution/in_place.h"
#include "strategies/execution/order.h"

namespace headroom {
namespace {

using execution::Order;

// Absent: as built.
std::optional<Order> order_of(const Spec& spec) {
  static const std::map<std::string, std::optional<Order>> orders = {
      {"built", std::nullopt},
      {"depth_first", Order::depth_first},
      {"breadth_first", Order::breadth_first},
      {"memory", Order::memory}};
  const std::string order = spec.text("order", "built");
  const auto found = orders.find(order);
  if (found == orders.end())
    throw InputError(
        fmt::format("{}: order '{}' does not exist; take built, depth_first, "
                    "breadth_first or memory",
                    spec.to_string(), order));
  return found->second;
}

bool reuses(const Spec& spec) { return spec.flag("inplace", true); }

Program apply_graph(Program lowered, const Spec& spec) {
  const auto order = order_of(spec);
  if (!order && !reuses(spec))
    throw InputError(
        fmt::format("{}: leaves the step unchanged; use an order other than built, or "
                    "execution last_use",
                    spec.to_string()));
  if (order) lowered = execution::reorder(std::move(lowered), *order);
  return reuses(spec) ? execution::reuse_operands(std::move(lowered)) : lowered;
}

Reason why_nothing_changed(const Spec& spec, const Program& before, const Program& after) {
  const auto same_name = [](const Op& a, const Op& b) { return a.name == b.name; };
  if (order_of(spec) && std::equal(before.ops.begin(), before.ops.end(), after.ops.begin(),
                                   after.ops.end(), same_name))
    return fmt::format("{}: every op runs where it ran in the order it was built in",
                       spec.to_string());
  if (reuses(spec) && std::none_of(after.ops.begin(), after.ops.end(),
                                   [](const Op& op) { return in_place(op).has_value(); }))
    return fmt::format("{}: no result could be written over an operand", spec.to_string());
  return std::nullopt;
}

const bool graph_is_registered = Registry<ExecutionStrategy>::instance().add(
    {.name = "graph",
     .summary = "Writes results over operands that no later op reads. order=depth_first, "
                "breadth_first or memory (greedy) runs the ops in another order",
     .parameters = {"inplace", "order"},
     .examples = {"graph", "graph(order=depth_first)", "graph(order=breadth_first)",
                  "graph(order=memory)", "graph(inplace=off,order=memory)"},
     .apply = apply_graph,
     .why_not_engaged = why_nothing_changed});

}  // namespace
}  // namespace headroom
