// Summarises a watched process tree, as figures and in words.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
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
  double longest_gap_s = 0;          // between two polls
  std::size_t samples_per_line = 1;  // of the timeline
  // The tree first (PSS where it was read often enough, else RSS), then the GPU, then the
  // processes that grow, fastest first.
  std::vector<WatchedGrowth> growth;

  bool has_leak() const;  // of the tree, or of its own GPU memory where known
};

// A series of bytes over minutes. Of a long one, only every second, fourth, … poll is kept.
class ThinnedSeries {
 public:
  void add(double time_s, Bytes bytes);
  const Series& series() const { return series_; }

 private:
  Series series_;
  std::size_t polls_ = 0, stride_ = 1;
};

// Sums polls up as they come, in memory that does not grow with the time of watching.
class WatchSummarizer {
 public:
  explicit WatchSummarizer(const LeakOptions& options) : options_(options) {}
  void add(const WatchSample& sample);
  WatchSummary summary() const;

 private:
  struct Followed {
    ThinnedSeries resident;
    ProcessUsage last;
    bool seen = false;  // by the latest poll
  };
  struct Gpu {
    std::optional<WatchPeak> peak;
    ThinnedSeries used;
  };
  void add(const ProcessUsage& process, double time_s);
  void judge(const Followed& process, std::vector<WatchedGrowth>& growing) const;

  LeakOptions options_;
  WatchSummary summary_;
  std::optional<WatchPeak> resident_peak_;
  ThinnedSeries resident_, proportional_;
  Gpu of_tree_, of_devices_;
  std::map<std::pair<pid_t, std::uint64_t>, Followed> alive_;
  std::vector<WatchedGrowth> grew_;  // processes that leaked until they ended
  std::optional<double> latest_;     // time of the latest poll
};

// One fact per line, without colours.
std::string to_words(const WatchSummary& summary, const WatchRecord& record, const WatchPlan& plan,
                     const LeakOptions& options);

std::string end_in_words(const ProcessEnd& end);  // "exit status 0", "killed by SIGSEGV"

}  // namespace headroom
