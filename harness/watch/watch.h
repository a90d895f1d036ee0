// Follows the memory of a process tree that is not Headroom's own. Memory is polled: peaks between
// two polls are missed, except those that the kernel records for a single process (its high-water
// mark).
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/gpu_memory.h"
#include "harness/watch/foreign_process.h"
#include "harness/watch/process_tree.h"

namespace headroom {

// The tree at one moment.
struct WatchSample {
  double time_s = 0;  // since the start of watching
  Bytes resident = 0;
  Bytes swapped = 0;
  std::optional<Bytes> proportional;  // PSS; absent if it was read of no process
  std::optional<GpuUsage> gpu;
  std::vector<ProcessUsage> processes;

  // The bytes that count against a budget: PSS where known, since it counts shared pages once.
  Bytes charged() const { return proportional.value_or(resident); }
};

// The first moment at which the tree held more than its budget.
struct BudgetBreach {
  double time_s = 0;
  Bytes held = 0;
  bool by_high_water_mark = false;  // of `process` alone; between two polls
  ProcessUsage process;             // the largest
};

struct WatchPlan {
  std::chrono::milliseconds interval{100};
  std::optional<Bytes> budget;
  bool stop_over_budget = false;  // SIGTERM to the tree, SIGKILL after a grace period
};

struct WatchRecord {
  std::optional<BudgetBreach> breach;
  std::string no_gpu;  // why samples lack GPU memory; "" = they have it
  double duration_s = 0;
  double own_cpu_s = 0;                   // CPU time taken by watching
  std::vector<ProcessUsage> left_behind;  // still alive when the command itself had ended
  ProcessEnd end;
};

using OnSample = std::function<void(const WatchSample&)>;
using OnBreach = std::function<void(const BudgetBreach&)>;

// Watches until the process ends, or until an interrupt if the process was not started here.
WatchRecord watch(ForeignProcess& process, ProcessTree& tree, const WatchPlan& plan,
                  const OnSample& on_sample, const OnBreach& on_breach);

}  // namespace headroom
