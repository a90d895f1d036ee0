#include "harness/execution/pool_plan.h"

#include "harness/memory/allocator.h"
#include "harness/planning/greedy.h"
#include "harness/program/in_place.h"
#include "harness/program/offload.h"

namespace headroom {
namespace {

// Walks through a Program as the Executor does and records when each block is allocated and freed.
class Lifetimes {
 public:
  explicit Lifetimes(const Program& program)
      : program_(program),
        on_host_(kept_on_host(program)),
        end_(static_cast<std::int64_t>(program.ops.size()) + 1) {
    found_.places.resize(program.values.size());
  }

  PoolBuffers follow() {
    const auto frees = last_uses(program_);
    for (const ValueId id : program_.inputs) begin(id, -1);  // all are fed before the first op
    for (std::size_t index = 0; index < program_.ops.size(); ++index) {
      const Op& op = program_.ops[index];
      const auto now = static_cast<std::int64_t>(index);
      const auto places = in_place(op);
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        if (places && places->output == i)
          found_.places[op.outputs[i]] = found_.places[op.inputs[places->input]];
        else
          begin(op.outputs[i], now);
      if (op.workspace != kNoValue) begin(op.workspace, now);
      for (const ValueId id : frees[index]) end(id, now + 1);
    }
    return std::move(found_);
  }

 private:
  std::vector<PlanBuffer>& buffers_with(ValueId id) {
    return on_host_[id] ? found_.host : found_.device;
  }

  // The life lasts to the end of the Program, to be read as a result, unless end() is called.
  void begin(ValueId id, std::int64_t now) {
    std::vector<PlanBuffer>& buffers = buffers_with(id);
    found_.places[id] = {.on_host = on_host_[id], .buffer = buffers.size()};
    buffers.push_back({.lower = now,
                       .upper = end_,
                       .size = align_up(program_.value(id).bytes, kBlockAlignment),
                       .alignment = kBlockAlignment});
  }

  void end(ValueId id, std::int64_t now) { buffers_with(id)[found_.places[id].buffer].upper = now; }

  const Program& program_;
  std::vector<bool> on_host_;  // by value
  std::int64_t end_;
  PoolBuffers found_;
};

}  // namespace

PoolBuffers pool_buffers(const Program& lowered) { return Lifetimes(lowered).follow(); }

PoolPlan plan_pool(const Program& lowered) {
  const PoolBuffers buffers = pool_buffers(lowered);
  const Offsets device = plan_greedily(buffers.device);
  const Offsets host = plan_greedily(buffers.host);
  PoolPlan plan{.device = makespan(buffers.device, device), .host = makespan(buffers.host, host)};
  for (const PoolBuffers::Place& place : buffers.places)
    plan.offsets.push_back(place.buffer == PoolBuffers::kNowhere ? 0
                           : place.on_host                       ? host[place.buffer]
                                                                 : device[place.buffer]);
  return plan;
}

}  // namespace headroom
