// Which blocks of a run are done, and which fell into a time when the machine was slow.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/experiment.h"
#include "harness/results/sample.h"

namespace headroom {

// A block during which a machine probe fell below this share of the best, or something else had
// the cores, is not compared.
inline constexpr double kSlowMachine = 0.8;
// Slow blocks are replaced by fresh ones, at most one for every so many planned.
inline constexpr int kBlocksPerRepeat = 2;

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
  int next_number(std::size_t experiment) const;  // above all planned and recorded
  // Numbers of the blocks to run in place of slow ones; none where metrics are exact. `max_blocks`
  // bounds an experiment's blocks, these included; 0 = no bound of its own. `added` blocks were
  // asked for beyond those planned.
  std::vector<int> repeats_due(std::size_t experiment, int max_blocks, int added = 0) const;

 private:
  struct State {
    std::set<std::string> arms;  // recorded
    double slowest_probe = 0;    // 0: none was taken
    bool comparable = true;      // every arm is ok
    bool was_crowded = false;    // see evidence.h
  };
  bool is_slow(const State& state) const;

  const std::vector<Experiment>& experiments_;
  std::map<std::string, std::size_t> index_;  // by id
  std::vector<std::map<int, State>> states_;  // per experiment, by block
  double best_probe_ = 0;
};

// Every arm's metrics are exact.
bool is_exact(const Experiment& experiment);

}  // namespace headroom
