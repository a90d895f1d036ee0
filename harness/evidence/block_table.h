// Tracks which blocks of a run are done and which ran while the machine was slow.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/experiment.h"
#include "harness/results/sample.h"

namespace headroom {

// A block is not compared if a machine probe during it fell below this share of the best, or if
// something else used the cores.
inline constexpr double kSlowMachine = 0.8;
// Slow blocks are replaced by fresh ones, at most one per this many planned blocks.
inline constexpr int kBlocksPerRepeat = 2;
constexpr int with_all_repeats(int blocks) {
  return blocks + (blocks + kBlocksPerRepeat - 1) / kBlocksPerRepeat;
}

class BlockTable {
 public:
  explicit BlockTable(const std::vector<Experiment>& experiments);

  // Samples of other experiments are ignored.
  void remember(const Sample& sample);
  void forget(std::size_t experiment, int block);

  bool is_recorded(std::size_t experiment, int block, const std::string& arm) const;
  bool is_complete(std::size_t experiment, int block) const;
  int slow_blocks() const;
  double best_probe_gflops() const { return best_probe_; }
  int next_number(std::size_t experiment) const;  // one above all planned and recorded
  // Returns the numbers of the blocks to run in place of slow ones; none if metrics are exact.
  // `max_blocks` limits an experiment's blocks including these; 0 = no limit of its own. `added` is
  // the number of blocks requested beyond those planned.
  std::vector<int> repeats_due(std::size_t experiment, int max_blocks, int added = 0) const;

 private:
  struct State {
    std::set<std::string> arms;  // recorded so far
    double slowest_probe = 0;    // 0 if none was taken
    bool comparable = true;      // every sample is ok
    bool was_crowded = false;    // see crowded() in sample_table.h
  };
  bool is_slow(const State& state) const;

  const std::vector<Experiment>& experiments_;
  std::map<std::string, std::size_t> index_;  // by id
  std::vector<std::map<int, State>> states_;  // per experiment, by block
  double best_probe_ = 0;
};

// Whether the metrics of every configuration are exact.
bool is_exact(const Experiment& experiment);

}  // namespace headroom
