// Summarises a watched process tree, as figures and in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/stats/leak_detector.h"
#include "harness/watch/watch.h"

namespace headroom {

struct WatchPeak {
  Bytes bytes = 0;
  double time_s = 0;
  std::size_t processes = 0;  // alive at that moment
};

// The leak verdict of one series; slopes are in bytes per minute.
struct WatchedGrowth {
  enum class Of { tree, devices, process };
  Of of = Of::tree;
  std::string metric;  // "PSS of the tree", "RSS of 123 (python3)", …
  LeakFinding finding;
};

struct WatchSummary {
  WatchPeak resident;
  std::optional<WatchPeak> proportional;
  std::optional<WatchPeak> gpu;  // of the tree if the driver reports it, else of the devices
  bool gpu_is_of_the_tree = false;
  Bytes swapped_peak = 0;
  std::optional<ProcessUsage> highest;  // by high-water mark; absent if none was seen
  std::size_t processes_seen = 0;
  double longest_gap_s = 0;  // between two polls
  // The tree first (PSS where it was read often enough, else RSS), then the GPU, then the
  // processes that grow, fastest first.
  std::vector<WatchedGrowth> growth;

  bool has_leak() const;  // of the tree, or of its own GPU memory where known
};

WatchSummary summarise(const std::vector<WatchSample>& samples, const LeakOptions& options);

// One fact per line, without colours.
std::string to_words(const WatchSummary& summary, const WatchRecord& record, const WatchPlan& plan,
                     const LeakOptions& options);

std::string end_in_words(const ProcessEnd& end);  // "exit status 0", "killed by SIGSEGV"

}  // namespace headroom
