// Tests comparisons of configurations that take turns, from recorded runs of the suite
// bench/statistics/turns.toml: how often identical ones look different, how often waits of a known
// size are seen, and whether taking turns shows the cost that processes one after another show.
// Usage:
//   build/headroom run bench/statistics/turns.toml
//   build/bench/statistics/turns RUN...
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/control/injection.h"
#include "harness/evidence/sample_table.h"
#include "harness/results/run_directory.h"
#include "harness/stats/median.h"
#include "harness/stats/paired.h"

namespace headroom {
namespace {

constexpr std::size_t kBlocks = 10;  // of one comparison, as in the quick suite's control
constexpr int kDraws = 1000;

using Steps = std::vector<double>;  // times of one process after warm-up, in order

double log_mean(const Steps& steps) {
  return std::log(std::accumulate(steps.begin(), steps.end(), 0.0) /
                  static_cast<double>(steps.size()));
}
double log_median(const Steps& steps) { return std::log(median_of(steps)); }
double log_middle_half_mean(Steps steps) {
  std::sort(steps.begin(), steps.end());
  const auto quarter = static_cast<std::ptrdiff_t>(steps.size() / 4);
  return log_mean({steps.begin() + quarter, steps.end() - quarter});
}
double log_smallest(const Steps& steps) {
  return std::log(*std::min_element(steps.begin(), steps.end()));
}
double median_log_ratio(const Steps& first, const Steps& second) {
  Steps ratios;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
    ratios.push_back(std::log(second[i] / first[i]));
  return median_of(std::move(ratios));
}

// How the steps of two processes give the log ratio of a block.
struct Figure {
  const char* name;
  double (*log_ratio)(const Steps& first, const Steps& second);
};
template <auto log_of>
double difference(const Steps& first, const Steps& second) {
  return log_of(second) - log_of(first);
}
constexpr Figure kFigures[] = {
    {"median of the ratios of steps with the same number", median_log_ratio},
    {"ratio of the medians", difference<log_median>},
    {"ratio of the means", difference<log_mean>},
    {"ratio of the means of the middle half", difference<log_middle_half_mean>},
    {"ratio of the smallest steps", difference<log_smallest>},
};

using ByBlock = std::map<int, Steps>;
using ByArm = std::map<std::string, ByBlock>;  // of one experiment
struct Recorded {
  std::map<std::string, ByArm> experiments;   // by the name in the suite
  std::map<std::string, std::string> inject;  // by name of the configuration
  double disturbed = 0;                       // share of the samples
};

constexpr int kAlternate = 8;  // steps of "alone" that work before as many rest

// "alone" has an experiment for each injection, which counts as a configuration here, by the
// name that its injection has where every step works.
std::string arm_alone(const Sample& sample) {
  std::string inject = sample.cell.inject.to_string();
  const std::string alternate = fmt::format("alternate={},", kAlternate);
  if (const auto at = inject.find(alternate); at != std::string::npos)
    inject.erase(at, alternate.size());
  return inject;
}

std::string experiment_name(const std::string& id) {
  const auto first = id.find('/');
  return id.substr(first + 1, id.find('/', first + 1) - first - 1);
}

Recorded read_steps(const RecordedRun& run) {
  Recorded recorded;
  const SampleTable table(run.samples, run.info.additions);
  std::size_t disturbed = 0;
  for (const Sample& sample : run.samples) {
    const auto warmup = static_cast<std::size_t>(sample.cell.warmup_steps);
    if (sample.status != SampleStatus::ok || sample.step_time_ns.size() <= warmup) continue;
    disturbed += table.disturbed(sample) ? 1 : 0;
    const std::string name = experiment_name(sample.experiment);
    const std::string arm = name == "alone" ? arm_alone(sample) : sample.arm;
    recorded.experiments[name][arm][sample.block] = {
        sample.step_time_ns.begin() + sample.cell.warmup_steps, sample.step_time_ns.end()};
    recorded.inject[arm] = name == "alone" ? arm : sample.cell.inject.to_string();
  }
  recorded.disturbed = static_cast<double>(disturbed) /
                       static_cast<double>(std::max<std::size_t>(1, run.samples.size()));
  return recorded;
}

std::vector<double> differences(const Figure& figure, const ByBlock& first, const ByBlock& second) {
  std::vector<double> all;
  for (const auto& [block, steps] : second)
    if (const auto found = first.find(block); found != first.end())
      all.push_back(figure.log_ratio(found->second, steps));
  return all;
}

double deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

bool looks_different(const std::vector<double>& blocks) {
  const Interval interval = signed_rank_interval(blocks, 0.95);
  return interval.low > 0 || interval.high < 0;
}

void print_identical(const Figure& figure, const Recorded& recorded) {
  std::vector<std::pair<const ByArm*, std::vector<std::string>>> groups;
  for (const auto& [name, arms] : recorded.experiments) {
    if (name != "identical" && name != "waits") continue;
    std::vector<std::string> clean;
    for (const auto& [arm, blocks] : arms)
      if (recorded.inject.at(arm) == kNoInjection) clean.push_back(arm);
    groups.emplace_back(&arms, clean);
  }
  std::vector<double> deviations;
  int alarms = 0, comparisons = 0;
  for (const auto& [arms, clean] : groups)
    for (std::size_t a = 0; a < clean.size(); ++a)
      for (std::size_t b = a + 1; b < clean.size(); ++b) {
        const auto all = differences(figure, arms->at(clean[a]), arms->at(clean[b]));
        if (all.size() > 1) deviations.push_back(deviation(all));
        for (std::size_t at = 0; at + kBlocks <= all.size(); at += kBlocks) {
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
          alarms += looks_different({first, first + kBlocks}) ? 1 : 0;
          ++comparisons;
        }
      }
  if (comparisons == 0) return;
  fmt::print("| {} | {:.1f} % | {} of {} ({:.1f} %) |\n", figure.name, 100 * median_of(deviations),
             alarms, comparisons, 100.0 * alarms / comparisons);
}

void print_waits(const Figure& figure, const Recorded& recorded) {
  const auto found = recorded.experiments.find("waits");
  if (found == recorded.experiments.end()) return;
  std::mt19937_64 random(20261124);
  for (const auto& [arm, blocks] : found->second) {
    if (recorded.inject.at(arm) == kNoInjection) continue;
    auto all = differences(figure, found->second.at(kNoInjection), blocks);
    if (all.size() < kBlocks) continue;
    int seen = 0;
    const double estimate = hodges_lehmann(all);
    for (int draw = 0; draw < kDraws; ++draw) {
      std::shuffle(all.begin(), all.end(), random);
      seen += signed_rank_interval({all.begin(), all.begin() + kBlocks}, 0.95).low > 0 ? 1 : 0;
    }
    fmt::print("| {} | {} | {} | {:.2f} % | {:.1f} % |\n", figure.name, arm, all.size(),
               100 * std::expm1(estimate), 100.0 * seen / kDraws);
  }
}

// The log ratio of steps that work to steps that rest, in a process that was alone: eight of each
// alternate, and the first after warm-up work. Every step that works is compared with the step
// eight before it and with the step eight after it.
double own_log_ratio(const Steps& steps) {
  Steps ratios;
  constexpr std::size_t kApart = kAlternate;
  for (std::size_t i = 0; i + kApart < steps.size(); ++i) {
    const double ratio = std::log(steps[i] / steps[i + kApart]);
    ratios.push_back(i / kApart % 2 == 0 ? ratio : -ratio);
  }
  return median_of(std::move(ratios));
}

std::string interval_of(const std::vector<double>& blocks) {
  const Interval interval = signed_rank_interval(blocks, 0.95);
  return fmt::format("({:.2f} … {:.2f})", 100 * std::expm1(interval.low),
                     100 * std::expm1(interval.high));
}

void print_work(const Figure& figure, const Recorded& recorded) {
  const auto turns = recorded.experiments.find("work");
  const auto alone = recorded.experiments.find("alone");
  if (turns == recorded.experiments.end() || alone == recorded.experiments.end()) return;
  for (const auto& [arm, blocks] : turns->second) {
    const auto other = alone->second.find(recorded.inject.at(arm));
    if (arm == kNoInjection || other == alone->second.end()) continue;
    std::vector<double> by_itself;
    for (const auto& [block, steps] : other->second) by_itself.push_back(own_log_ratio(steps));
    const auto in_turns = differences(figure, turns->second.at(kNoInjection), blocks);
    const double first = std::expm1(hodges_lehmann(in_turns));
    const double second = std::expm1(hodges_lehmann(by_itself));
    fmt::print("| {} | {} | {:.2f} % {} | {:.2f} % {} | {:+.2f} |\n", figure.name, arm, 100 * first,
               interval_of(in_turns), 100 * second, interval_of(by_itself), 100 * (first - second));
  }
}

int run(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const RecordedRun run = read_run(directory);
    const Recorded recorded = read_steps(run);
    fmt::print("{}: {} samples, of which a verdict would leave out {:.0f} %\n\n", run.info.run_id,
               run.samples.size(), 100 * recorded.disturbed);
    fmt::print(
        "| figure | sd of a block's log ratio | identical configurations that look different |\n"
        "|---|---|---|\n");
    for (const Figure& figure : kFigures) print_identical(figure, recorded);
    fmt::print(
        "\n| figure | wait | blocks | estimate | seen in draws of {} blocks |\n"
        "|---|---|---|---|---|\n",
        kBlocks);
    for (const Figure& figure : kFigures) print_waits(figure, recorded);
    fmt::print(
        "\n| figure | work | in turns (interval) | alone (interval) | points between |\n"
        "|---|---|---|---|---|\n");
    print_work(kFigures[0], recorded);
    print_work(kFigures[1], recorded);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: turns RUN...\n");
    return 2;
  }
  return headroom::run({argv + 1, argv + argc});
} catch (const headroom::Error& error) {
  fmt::print(stderr, "turns: {}\n", error.what());
  return 2;
}
