// Tests the summary of a long watch, and of processes that ended while they were watched.
#include "harness/watch/watch_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace headroom::watch_summary_test {
namespace {

using ::testing::HasSubstr;

constexpr int kPollsOfADay = 24 * 60 * 60;
constexpr double kInterval = 1;  // s

ProcessUsage process(pid_t pid, const char* command, Bytes resident) {
  ProcessUsage usage;
  usage.pid = pid;
  usage.command = command;
  usage.resident = resident;
  return usage;
}

WatchSample sample_at(int poll, std::vector<ProcessUsage> processes) {
  WatchSample sample;
  sample.time_s = kInterval * poll;
  for (const ProcessUsage& process : processes) sample.resident += process.resident;
  sample.processes = std::move(processes);
  return sample;
}

// 1 GiB, up to 16 MiB of noise, and growth.
Bytes resident(int poll, Bytes grown_in_a_day) {
  static std::mt19937 random(7);
  return kGiB + random() % (16 * kMiB) + grown_in_a_day * static_cast<Bytes>(poll) / kPollsOfADay;
}

TEST(ADayOfWatching, keeps_a_bounded_number_of_points_from_first_to_last) {
  ThinnedSeries series;
  for (int poll = 0; poll < kPollsOfADay; ++poll)
    series.add(kInterval * poll, static_cast<Bytes>(poll));
  EXPECT_LT(series.series().size(), 40'000u);
  EXPECT_GT(series.series().size(), 10'000u);
  EXPECT_EQ(series.series().at.front(), 0);
  EXPECT_NEAR(series.series().at.back(), 24 * 60, 0.2);
  check_series(series.series());
}

TEST(ADayOfWatching, finds_a_leak_and_the_exact_peak) {
  constexpr int kOfThePeak = 12'345;
  WatchSummarizer summarizer({});
  for (int poll = 0; poll < kPollsOfADay; ++poll)
    summarizer.add(sample_at(
        poll, {process(1, "grows", poll == kOfThePeak ? 5 * kGiB : resident(poll, kGiB))}));
  const WatchSummary summary = summarizer.summary();
  EXPECT_TRUE(summary.has_leak());
  EXPECT_NEAR(summary.growth.front().finding.slope, kGiB / (24 * 60), kMiB / 20.0);
  EXPECT_EQ(summary.resident.bytes, 5 * kGiB);
  EXPECT_DOUBLE_EQ(summary.resident.time_s, kInterval * kOfThePeak);
}

TEST(Watching, names_a_process_that_grew_until_it_ended) {
  constexpr int kPolls = 4000;
  WatchSummarizer summarizer({});
  for (int poll = 0; poll < 2 * kPolls; ++poll) {
    std::vector<ProcessUsage> processes = {process(1, "steady", kGiB)};
    if (poll < kPolls) processes.push_back(process(2, "grows", resident(2 * poll, 90 * kGiB)));
    summarizer.add(sample_at(poll, processes));
  }
  const WatchSummary summary = summarizer.summary();
  ASSERT_EQ(summary.growth.size(), 2u);  // the tree, then the process
  EXPECT_THAT(summary.growth.back().metric, HasSubstr("2 (grows)"));
  EXPECT_EQ(summary.growth.back().finding.verdict, LeakVerdict::leak);
  EXPECT_EQ(summary.processes_seen, 2u);
}

}  // namespace
}  // namespace headroom::watch_summary_test
