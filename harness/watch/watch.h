// Follows the memory of a process tree that is not Headroom's own. What it sees is polled: shorter
// peaks pass unseen, except those that the kernel records for one process (its high-water mark).
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
  double time_s = 0;  // since watching began
  Bytes resident = 0;
  Bytes swapped = 0;
  std::optional<Bytes> proportional;  // PSS; absent where it was not read, of any process
  std::optional<GpuUsage> gpu;
  std::vector<ProcessUsage> processes;

  // What counts against a budget: PSS where it is known, since shared pages are there once.
  Bytes charged() const { return proportional.value_or(resident); }
};

// The first moment at which more was held than allowed.
struct BudgetBreach {
  double time_s = 0;
  Bytes held = 0;
  bool by_high_water_mark = false;  // of `process` alone; between two polls
  ProcessUsage process;             // the largest
};

struct WatchPlan {
  std::chrono::milliseconds interval{100};
  std::optional<Bytes> budget;
  bool stop_over_budget = false;  // SIGTERM to the tree, SIGKILL after a grace
};

struct WatchRecord {
  std::vector<WatchSample> samples;
  std::optional<BudgetBreach> breach;
  std::string no_gpu;  // why GPU memory is not in the samples; "" = it is
  double duration_s = 0;
  double own_cpu_s = 0;                   // what watching took
  std::vector<ProcessUsage> left_behind;  // of the tree, when the command itself had ended
  ProcessEnd end;
};

using OnSample = std::function<void(const WatchSample&)>;
using OnBreach = std::function<void(const BudgetBreach&)>;

// Until the process ends, or somebody interrupts the watching of one that was not started here.
WatchRecord watch(ForeignProcess& process, ProcessTree& tree, const WatchPlan& plan,
                  const OnSample& on_sample, const OnBreach& on_breach);

}  // namespace headroom
