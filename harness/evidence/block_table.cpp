#include "harness/evidence/block_table.h"

#include <algorithm>

#include "harness/evidence/evidence.h"
#include "harness/evidence/sample_table.h"
#include "harness/plan/scenario.h"

namespace headroom {

BlockTable::BlockTable(const std::vector<Experiment>& experiments)
    : experiments_(experiments), states_(experiments.size()) {
  for (std::size_t i = 0; i < experiments.size(); ++i) index_[experiments[i].id] = i;
}

void BlockTable::remember(const Sample& sample) {
  const auto found = index_.find(sample.experiment);
  if (found == index_.end()) return;
  State& state = states_[found->second][sample.block];
  state.arms.insert(sample.arm);
  state.comparable = state.comparable && sample.status == SampleStatus::ok;
  state.was_crowded = state.was_crowded || crowded(sample);
  const auto [slower, faster] = probes_of(sample);
  if (slower == 0) return;
  best_probe_ = std::max(best_probe_, faster);
  state.slowest_probe = state.slowest_probe == 0 ? slower : std::min(state.slowest_probe, slower);
}

void BlockTable::forget(std::size_t experiment, int block) { states_[experiment].erase(block); }

bool BlockTable::is_recorded(std::size_t experiment, int block, const std::string& arm) const {
  const auto found = states_[experiment].find(block);
  return found != states_[experiment].end() && found->second.arms.contains(arm);
}

bool BlockTable::is_complete(std::size_t experiment, int block) const {
  const auto& arms = experiments_[experiment].arms;
  return std::all_of(arms.begin(), arms.end(),
                     [&](const Arm& arm) { return is_recorded(experiment, block, arm.name); });
}

bool BlockTable::is_slow(const State& state) const {
  const bool slow = state.slowest_probe > 0 && state.slowest_probe < kSlowMachine * best_probe_;
  return state.comparable && (slow || state.was_crowded);
}

int BlockTable::slow_blocks() const {
  int count = 0;
  for (const auto& blocks : states_)
    for (const auto& [number, state] : blocks) count += is_slow(state) ? 1 : 0;
  return count;
}

int BlockTable::next_number(std::size_t experiment) const {
  const auto& recorded = states_[experiment];
  const int last = recorded.empty() ? 0 : recorded.rbegin()->first + 1;
  return std::max(experiments_[experiment].blocks, last);
}

std::vector<int> BlockTable::repeats_due(std::size_t experiment, int max_blocks, int added) const {
  const int planned = experiments_[experiment].blocks + added;
  int most = with_all_repeats(planned);
  if (max_blocks > 0) most = std::min(most, max_blocks + added);
  int good = 0;
  int next = planned;
  for (const auto& [number, state] : states_[experiment]) {
    if (!is_complete(experiment, number)) continue;
    next = std::max(next, number + 1);
    if (!is_slow(state)) ++good;
  }
  std::vector<int> numbers;
  if (is_exact(experiments_[experiment])) return numbers;
  for (; good < planned && next < most; ++good) numbers.push_back(next++);
  return numbers;
}

bool is_exact(const Experiment& experiment) {
  return std::all_of(experiment.arms.begin(), experiment.arms.end(),
                     [](const Arm& arm) { return is_exact_cell(arm.cell); });
}

}  // namespace headroom
