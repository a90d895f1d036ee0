#include "harness/whatif/advice.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/plan/axes.h"

namespace headroom {
namespace {

using Axes = std::vector<std::pair<std::string, std::string>>;

// The order is from the change that costs a user least to the one that costs most.
const std::vector<Axes>& changes_tried() {
  static const std::pair<std::string, std::string> kBf16 = {"precision", "bf16"},
                                                   kSelective = {"checkpointing", "selective"},
                                                   kSqrt = {"checkpointing", "sqrt"},
                                                   kTwo = {"accumulation", "micro_batches(k=2)"},
                                                   kFour = {"accumulation", "micro_batches(k=4)"};
  static const std::vector<Axes> changes = {
      {kBf16}, {kSelective}, {kSqrt}, {kTwo}, {kFour}, {kBf16, kSelective}, {kBf16, kSqrt},
  };
  return changes;
}

bool is_default(const Cell& cell, const std::string& axis) {
  return axis_value(cell, axis) == axis_value(Cell{}, axis);
}

}  // namespace

std::vector<Change> changes_that_fit(const Cell& cell, const Spec& allocator) {
  std::vector<Change> found;
  for (const Axes& axes : changes_tried()) {
    Cell changed = cell;
    if (!std::all_of(axes.begin(), axes.end(),
                     [&](const auto& axis) { return is_default(cell, axis.first); }))
      continue;
    try {
      for (const auto& [axis, value] : axes) set_axis(changed, axis, value);
      Fit fit = find_fit(changed, {allocator});
      const AllocatorFit& row = fit.allocators.front();
      if (row.serves() && !fit.not_engaged) found.push_back({.axes = axes, .fit = std::move(fit)});
    } catch (const InputError&) {  // this workload cannot be changed in this way
    }
  }
  return found;
}

}  // namespace headroom
