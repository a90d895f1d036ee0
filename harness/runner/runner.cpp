#include "harness/runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "harness/base/duration.h"
#include "harness/base/interrupt.h"
#include "harness/device/traits.h"
#include "harness/evidence/block_table.h"
#include "harness/plan/scenario.h"
#include "harness/plan/schedule.h"
#include "harness/runner/block_sampler.h"
#include "harness/runner/run_time.h"
#include "harness/runner/sample_process.h"
#include "harness/runner/turns.h"

namespace headroom {
namespace {

// A device that computes without a driver holds its values in the memory of this machine.
bool uses_memory_of_machine(const Spec& device) {
  const DeviceTraits traits = traits_of(device);
  return traits.computes && !traits.has_driver;
}

bool runs_here(const Arm& arm) { return !unsupported_sample(arm.cell); }

class Run {
 public:
  Run(RunInfo& info, const std::vector<Sample>& recorded, RunDirectory& directory,
      Progress& progress, const RunnerOptions& options)
      : info_(info),
        directory_(directory),
        progress_(progress),
        options_(options),
        table_(info.experiments),
        times_(info.experiments),
        sampler_(info.cost, directory.path()) {
    for (const Sample& sample : recorded) table_.remember(sample);
    const std::size_t cut = samples_of_cut_block(recorded);
    if (may_grow()) samples_.assign(recorded.begin(), recorded.end() - static_cast<long>(cut));
    directory_.drop_last(cut);
  }

  RunOutcome operator()() {
    for (SampleBlock& block :
         schedule(info_.experiments, info_.seed, info_.shard.value_or(Shard{})))
      if (!table_.is_complete(block.experiment, block.number)) enqueue(std::move(block));
    for (std::size_t i = 0; i < info_.experiments.size(); ++i)
      for (const int number : added_blocks(i))
        if (!table_.is_complete(i, number))
          enqueue(make_block(info_.experiments[i], i, number, info_.seed));
    touch_host_memory();
    do {
      while (!queue_.empty() && !outcome_.interrupted && !outcome_.out_of_budget) {
        outcome_.out_of_budget =
            options_.budget && outcome_.recorded > 0 && Clock::now() - begin_ >= *options_.budget;
        if (outcome_.out_of_budget) break;
        outcome_.interrupted = !run_block(queue_.front());
        if (!outcome_.interrupted) queue_.pop_front();
      }
    } while (!outcome_.interrupted && !outcome_.out_of_budget &&
             (add_repeats() || add_second_stage()));
    outcome_.slow_blocks = table_.slow_blocks();
    info_.cost.wall_s += seconds_since(begin_);
    return outcome_;
  }

 private:
  // The number of samples of a noisy block that was interrupted by a kill. The whole block is
  // repeated, and its samples are dropped.
  std::size_t samples_of_cut_block(const std::vector<Sample>& recorded) {
    if (recorded.empty()) return 0;
    const Sample& last = recorded.back();
    const auto experiment =
        std::find_if(info_.experiments.begin(), info_.experiments.end(),
                     [&](const Experiment& one) { return one.id == last.experiment; });
    if (experiment == info_.experiments.end() || is_exact(*experiment)) return 0;
    const auto index = static_cast<std::size_t>(experiment - info_.experiments.begin());
    if (table_.is_complete(index, last.block)) return 0;
    table_.forget(index, last.block);
    const auto end = std::find_if(recorded.rbegin(), recorded.rend(), [&](const Sample& sample) {
      return sample.experiment != last.experiment || sample.block != last.block;
    });
    return static_cast<std::size_t>(end - recorded.rbegin());
  }

  std::vector<int> added_blocks(std::size_t experiment) const {
    std::vector<int> numbers;
    for (const Addition& addition : info_.additions)
      for (int i = 0; i < addition.blocks; ++i)
        if (addition.experiment == info_.experiments[experiment].id)
          numbers.push_back(addition.first_block + i);
    return numbers;
  }

  int stage_blocks(std::size_t experiment) const {
    int blocks = 0;
    for (const Addition& addition : info_.additions)
      if (addition.experiment == info_.experiments[experiment].id &&
          addition.reason == AddedFor::dispersion)
        blocks += addition.blocks;
    return blocks;
  }

  void enqueue(SampleBlock block) {
    // Samples are compared because they ran together: an incomplete noisy block is repeated.
    if (!is_exact(info_.experiments[block.experiment]))
      table_.forget(block.experiment, block.number);
    progress_.add_to_total(samples_left(block));
    queue_.push_back(std::move(block));
  }

  int samples_left(const SampleBlock& block) const {
    const auto& arms = info_.experiments[block.experiment].arms;
    return static_cast<int>(std::count_if(arms.begin(), arms.end(), [&](const Arm& arm) {
      return !table_.is_recorded(block.experiment, block.number, arm.name);
    }));
  }

  void touch_host_memory() {
    std::set<std::string> devices;
    for (const SampleBlock& block : queue_)
      for (const Arm& arm : info_.experiments[block.experiment].arms)
        if (uses_memory_of_machine(arm.cell.device) && trains(arm.cell))
          devices.insert(arm.cell.device.to_string());
    for (const std::string& device : devices) {
      if (interrupt_requested()) return;
      progress_.note(fmt::format("Touching the memory of {} once before it is measured", device));
      sampler_.touch(Spec::parse(device));
    }
  }

  // Returns false when an interrupt ended it.
  bool run_block(const SampleBlock& block) {
    const Experiment& experiment = info_.experiments[block.experiment];
    std::vector<SamplePlace> turns;
    std::vector<const Cell*> cells;
    for (std::size_t i = 0; i < block.arms.size(); ++i) {
      const SamplePlace one{&experiment, &block, i};
      if (!is_left(one) || is_exact_cell(one.arm().cell) || !runs_here(one.arm())) continue;
      turns.push_back(one);
      cells.push_back(&one.arm().cell);
    }
    const std::string why_alone = turns.size() < 2 ? "" : why_no_turns(cells);
    if (turns.size() < 2 || !why_alone.empty()) turns.clear();
    for (std::size_t i = 0; i < block.arms.size(); ++i) {
      const SamplePlace one{&experiment, &block, i};
      if (!is_left(one)) continue;
      const bool in_turns = std::any_of(turns.begin(), turns.end(),
                                        [&](const SamplePlace& turn) { return turn.place == i; });
      if (!take_samples(in_turns ? turns : side_by_side(one), why_alone)) return false;
    }
    return true;
  }

  bool is_left(const SamplePlace& one) const {
    return !table_.is_recorded(one.block->experiment, one.block->number, one.arm().name);
  }

  // Returns `first`, which is in the first block of the queue, and later samples that run at the
  // same time. They may belong to later blocks.
  std::vector<SamplePlace> side_by_side(const SamplePlace& first) const {
    std::vector<SamplePlace> places = {first};
    const auto at_once = [](const Arm& arm) {
      return static_cast<std::size_t>(runs_here(arm) ? samples_at_once(arm.cell) : 1);
    };
    const std::size_t most = at_once(first.arm());
    for (const SampleBlock& block : queue_)
      for (std::size_t i = &block == first.block ? first.place + 1 : 0; i < block.arms.size();
           ++i) {
        if (places.size() >= most) return places;
        const SamplePlace next{&info_.experiments[block.experiment], &block, i};
        if (is_left(next) && at_once(next.arm()) > 1) places.push_back(next);
      }
    return places;
  }

  // Takes and records the samples at these places; those of one block that are timed take turns.
  // Returns false when an interrupt ended it.
  bool take_samples(const std::vector<SamplePlace>& places, const std::string& why_alone) {
    if (interrupt_requested()) return false;
    auto taken = sampler_.take(places);
    if (!taken) return false;
    for (std::size_t n = 0; n < places.size(); ++n) {
      auto& [sample, worked] = (*taken)[n];
      const SampleBlock& block = *places[n].block;
      sample.experiment = places[n].experiment->id;
      sample.arm = places[n].arm().name;
      sample.block = block.number;
      sample.order_index = static_cast<int>(places[n].place);
      if (!is_exact_cell(sample.cell)) sample.why_no_turns = why_alone;
      directory_.append(sample);
      ++outcome_.recorded;
      table_.remember(sample);
      if (may_grow()) samples_.push_back(sample);
      if (table_.best_probe_gflops() > 0) info_.best_probe_gflops = table_.best_probe_gflops();
      if (sample.status != SampleStatus::unsupported) times_.add(block.experiment, worked);
      report(sample);
    }
    return true;
  }

  void report(const Sample& sample) {
    // Out of memory is a result, and often the one that is sought, so a counter shows it.
    if (sample.block == 0 && sample.status == SampleStatus::oom) ++outcome_.out_of_memory;
    if (sample.block == 0 && sample.status != SampleStatus::ok &&
        sample.status != SampleStatus::oom)
      progress_.note(fmt::format("{} [{}]: {}: {}", sample.experiment, sample.arm,
                                 to_string(sample.status), sample.reason));
    double left = 0;
    for (const SampleBlock& block : queue_)
      left += times_.next(block.experiment, samples_left(block));
    progress_.update(outcome_.recorded,
                     std::chrono::round<std::chrono::seconds>(std::chrono::duration<double>(left)),
                     fmt::format("{}{} [{}]",
                                 outcome_.out_of_memory > 0
                                     ? fmt::format("{} out of memory, ", outcome_.out_of_memory)
                                     : "",
                                 sample.experiment, sample.arm));
  }

  // Adds blocks in place of slow ones; returns false when none are due.
  bool add_repeats() {
    // Two shards would use the same block numbers; the merged run adds the blocks instead.
    if (info_.shard) return false;
    for (std::size_t i = 0; i < info_.experiments.size(); ++i) {
      const auto arms = static_cast<int>(info_.experiments[i].arms.size());
      const auto added = static_cast<int>(added_blocks(i).size());
      // The bound includes a second stage, but not blocks added after a look at the verdicts.
      const int bound = options_.max_pairs ? std::max(1, *options_.max_pairs - stage_blocks(i)) : 0;
      for (const int number : table_.repeats_due(i, bound, added)) {
        enqueue(make_block(info_.experiments[i], i, number, info_.seed));
        ++outcome_.repeat_blocks;
        info_.planned_samples += arms;
      }
    }
    if (!queue_.empty())
      progress_.note(fmt::format(
          "The machine fell below {:.0f} % of its best speed, or other programs had its cores; "
          "blocks that are repeated: {}",
          100 * kSlowMachine, queue_.size()));
    return !queue_.empty();
  }

  bool may_grow() const {
    return std::any_of(info_.experiments.begin(), info_.experiments.end(),
                       [](const Experiment& e) { return e.max_blocks > e.blocks; });
  }

  // Adds the second stage once, when the pilots are complete; returns false when their dispersion
  // requires none.
  bool add_second_stage() {
    // A shard sees only part of the pilots; the merged run adds the stage when it is resumed.
    if (info_.shard || !may_grow()) return false;
    for (const auto& [i, wanted, blocks] :
         second_stages(info_.experiments, options_.comparisons, samples_)) {
      const Experiment& experiment = info_.experiments[i];
      if (stage_blocks(i) > 0) continue;
      progress_.note(
          fmt::format("{}: the pilot of {} pairs varies so much that {} are needed; with the limit "
                      "of {}, {} are added",
                      experiment.id, experiment.blocks, wanted, experiment.max_blocks, blocks));
      info_.additions.push_back({.experiment = experiment.id,
                                 .reason = AddedFor::dispersion,
                                 .added = timestamp_now(),
                                 .first_block = table_.next_number(i),
                                 .blocks = blocks});
      info_.planned_samples += blocks * static_cast<int>(experiment.arms.size());
      outcome_.stage_blocks += blocks;
      for (int n = 0; n < blocks; ++n)
        enqueue(make_block(experiment, i, info_.additions.back().first_block + n, info_.seed));
    }
    // Written before the blocks run, so that a killed run resumes with the same stage.
    if (!queue_.empty()) directory_.write(info_);
    return !queue_.empty();
  }

  RunInfo& info_;
  RunDirectory& directory_;
  Progress& progress_;
  const RunnerOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  std::deque<SampleBlock> queue_;
  BlockTable table_;
  std::vector<Sample> samples_;  // for sizing a second stage
  SampleTimes times_;
  BlockSampler sampler_;
  RunOutcome outcome_;
};

}  // namespace

RunOutcome run_experiments(RunInfo& info, const std::vector<Sample>& recorded,
                           RunDirectory& directory, Progress& progress,
                           const RunnerOptions& options) {
  return Run(info, recorded, directory, progress, options)();
}

}  // namespace headroom
