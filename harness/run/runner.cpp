#include "harness/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness/base/interrupt.h"
#include "harness/base/sha256.h"
#include "harness/run/probe.h"
#include "harness/run/sample_process.h"
#include "harness/run/schedule.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

bool is_exact(const Experiment& experiment) {
  return std::all_of(experiment.arms.begin(), experiment.arms.end(),
                     [](const Arm& arm) { return is_exact_device(arm.cell.device); });
}

// Where the suite says nothing.
double guessed_seconds(const Experiment& experiment) {
  if (std::all_of(experiment.arms.begin(), experiment.arms.end(),
                  [](const Arm& arm) { return unsupported_sample(arm.cell).has_value(); }))
    return 0;
  if (experiment.estimated_seconds > 0) return experiment.estimated_seconds;
  return is_exact(experiment) ? 1 : 5;
}

std::string trace_name(const Experiment& experiment, const Arm& arm) {
  const std::string name = experiment.id + "--" + arm.name;
  std::string slug = name.substr(0, 100);
  for (char& c : slug)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '=' && c != '.') c = '-';
  return fmt::format("traces/{}-{}.json.gz", slug, sha256(name).substr(0, 8));
}

// What is known of one block.
struct BlockState {
  std::set<std::string> arms;  // recorded
  double slowest_probe = 0;    // 0: none was taken
  bool comparable = true;      // every arm is ok
};

class Run {
 public:
  Run(RunInfo& info, const std::vector<Sample>& recorded, RunDirectory& directory,
      Progress& progress, const RunnerOptions& options)
      : info_(info),
        directory_(directory),
        progress_(progress),
        options_(options),
        states_(info.experiments.size()),
        timings_(info.experiments.size()) {
    for (const Sample& sample : recorded)
      for (std::size_t i = 0; i < info_.experiments.size(); ++i)
        if (info_.experiments[i].id == sample.experiment) remember(i, sample);
  }

  RunOutcome operator()() {
    for (Block& block : schedule(info_.experiments, info_.seed)) queue_.push_back(std::move(block));
    do {
      std::erase_if(queue_, [&](const Block& block) { return is_complete(block); });
      while (!queue_.empty()) {
        outcome_.out_of_budget = options_.budget && Clock::now() - begin_ >= *options_.budget;
        outcome_.interrupted = !outcome_.out_of_budget && !run_block(queue_.front());
        if (outcome_.out_of_budget || outcome_.interrupted) return finish();
        queue_.pop_front();
      }
    } while (add_repeats());
    return finish();
  }

 private:
  const Experiment& experiment_of(const Block& block) const {
    return info_.experiments[block.experiment];
  }

  void remember(std::size_t experiment, const Sample& sample) {
    BlockState& state = states_[experiment][sample.block];
    state.arms.insert(sample.arm);
    state.comparable = state.comparable && sample.status == SampleStatus::ok;
    const double slower = std::min(sample.probe_before_gflops, sample.probe_after_gflops);
    if (slower == 0) return;
    state.slowest_probe = state.slowest_probe == 0 ? slower : std::min(state.slowest_probe, slower);
    const double faster = std::max(sample.probe_before_gflops, sample.probe_after_gflops);
    info_.best_probe_gflops = std::max(info_.best_probe_gflops.value_or(0), faster);
  }

  bool is_complete(const Block& block) const {
    const auto found = states_[block.experiment].find(block.number);
    return found != states_[block.experiment].end() &&
           found->second.arms.size() == experiment_of(block).arms.size();
  }

  bool is_slow(const BlockState& state) const {
    return state.comparable && state.slowest_probe > 0 &&
           state.slowest_probe < kSlowMachine * info_.best_probe_gflops.value_or(0);
  }

  // False when an interrupt ended it.
  bool run_block(const Block& block) {
    const Experiment& experiment = experiment_of(block);
    BlockState& state = states_[block.experiment][block.number];
    // Arms are compared because they ran back to back: half a noisy block is run anew.
    if (!is_exact(experiment)) state = {};
    for (std::size_t i = 0; i < block.arms.size(); ++i) {
      const Arm& arm = experiment.arms[block.arms[i]];
      if (state.arms.contains(arm.name)) continue;
      const auto begin = Clock::now();
      std::optional<Sample> sample = run_arm(experiment, arm, block);
      if (!sample) return false;
      sample->experiment = experiment.id;
      sample->arm = arm.name;
      sample->block = block.number;
      sample->order_index = static_cast<int>(i);
      directory_.append(*sample);
      ++outcome_.recorded;
      remember(block.experiment, *sample);
      if (sample->status != SampleStatus::unsupported)
        timings_[block.experiment].push_back(Seconds(Clock::now() - begin).count());
      report(*sample);
    }
    return true;
  }

  std::optional<Sample> run_arm(const Experiment& experiment, const Arm& arm, const Block& block) {
    if (interrupt_requested()) return std::nullopt;
    if (std::optional<Sample> sample = unsupported_sample(arm.cell)) return sample;
    const bool noisy = !is_exact_device(arm.cell.device);
    // One trace per arm: the others are like it, byte for byte where bytes are exact.
    const std::string trace = block.number == 0 ? trace_name(experiment, arm) : "";
    const double before = noisy ? probe_gflops(cores_) : 0;
    std::optional<Sample> sample =
        run_in_child({.cell = arm.cell,
                      .seed = block.seed,
                      .trace_path = trace.empty() ? "" : (directory_.path() / trace).string()},
                     std::chrono::seconds{experiment.timeout_s});
    if (!sample) return std::nullopt;
    sample->probe_before_gflops = before;
    sample->probe_after_gflops = noisy ? probe_gflops(cores_) : 0;
    sample->trace_file =
        !trace.empty() && std::filesystem::exists(directory_.path() / trace) ? trace : "";
    return sample;
  }

  void report(const Sample& sample) {
    if (sample.status != SampleStatus::ok && sample.block == 0)
      progress_.note(fmt::format("{} [{}]: {}: {}", sample.experiment, sample.arm,
                                 to_string(sample.status), sample.reason));
    double seconds = 0;
    for (const Block& block : queue_) {
      const double each = seconds_a_sample(block.experiment);
      const auto found = states_[block.experiment].find(block.number);
      const std::size_t done =
          found == states_[block.experiment].end() ? 0 : found->second.arms.size();
      seconds += each * static_cast<double>(block.arms.size() - done);
    }
    progress_.update(++shown_, std::chrono::round<std::chrono::seconds>(Seconds(seconds)),
                     fmt::format("{} [{}]", sample.experiment, sample.arm));
  }

  // The median of what was measured: a first sample may generate its data set.
  double seconds_a_sample(std::size_t experiment) const {
    std::vector<double> measured = timings_[experiment];
    if (measured.empty()) return guessed_seconds(info_.experiments[experiment]);
    const auto middle = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
    std::nth_element(measured.begin(), middle, measured.end());
    return *middle;
  }

  // Fresh blocks in place of slow ones, within bounds; false when none are due.
  bool add_repeats() {
    for (std::size_t i = 0; i < info_.experiments.size(); ++i) {
      const Experiment& experiment = info_.experiments[i];
      if (is_exact(experiment)) continue;
      int most = experiment.blocks + (experiment.blocks + kBlocksPerRepeat - 1) / kBlocksPerRepeat;
      if (options_.max_pairs) most = std::min(most, *options_.max_pairs);
      int good = 0, next = 0;
      for (const auto& [number, state] : states_[i]) {
        if (state.arms.size() < experiment.arms.size()) continue;
        next = number + 1;
        if (!is_slow(state)) ++good;
      }
      for (; good < experiment.blocks && next < most; ++good, ++next) {
        queue_.push_back(make_block(experiment, i, next, info_.seed));
        ++outcome_.repeat_blocks;
        info_.planned_samples += static_cast<int>(experiment.arms.size());
        progress_.add_to_total(static_cast<int>(experiment.arms.size()));
      }
    }
    if (!queue_.empty())
      progress_.note(
          fmt::format("The machine fell below {:.0f} % of its best speed; {} blocks are run again",
                      100 * kSlowMachine, queue_.size()));
    return !queue_.empty();
  }

  RunOutcome finish() {
    for (const auto& blocks : states_)
      for (const auto& [number, state] : blocks) outcome_.slow_blocks += is_slow(state) ? 1 : 0;
    return outcome_;
  }

  RunInfo& info_;
  RunDirectory& directory_;
  Progress& progress_;
  const RunnerOptions& options_;
  const int cores_ = usable_cores();
  const Clock::time_point begin_ = Clock::now();
  std::deque<Block> queue_;
  std::vector<std::map<int, BlockState>> states_;  // per experiment, by block
  std::vector<std::vector<double>> timings_;       // per experiment, seconds a sample
  RunOutcome outcome_;
  int shown_ = 0;
};

}  // namespace

RunOutcome run_experiments(RunInfo& info, const std::vector<Sample>& recorded,
                           RunDirectory& directory, Progress& progress,
                           const RunnerOptions& options) {
  return Run(info, recorded, directory, progress, options)();
}

std::chrono::seconds estimate(const std::vector<Experiment>& experiments) {
  double seconds = 0;
  for (const Experiment& experiment : experiments)
    seconds += guessed_seconds(experiment) * experiment.blocks *
               static_cast<double>(experiment.arms.size());
  return std::chrono::round<std::chrono::seconds>(Seconds(seconds));
}

}  // namespace headroom
