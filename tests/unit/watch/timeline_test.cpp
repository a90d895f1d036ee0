// Tests the file of samples that a watch leaves, in small.
#include "harness/watch/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/unit/support/temporary_directory.h"

namespace headroom::timeline_test {
namespace {

using Json = nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::size_t kMostLines = 16;

WatchSample sample_at(int second, Bytes resident) {
  WatchSample sample;
  sample.time_s = second;
  sample.resident = resident;
  return sample;
}

class TimelineFile : public ::testing::Test {
 protected:
  std::vector<Json> lines() const {
    std::ifstream file(path_);
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  template <typename Value>
  std::vector<Value> of_lines(const char* key) const {
    std::vector<Value> values;
    for (const Json& line : lines()) values.push_back(line[key].get<Value>());
    return values;
  }

  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "timeline.jsonl";
  Timeline timeline_{path_, kMostLines};
};

TEST_F(TimelineFile, has_a_line_for_each_sample_at_first) {
  for (int second = 0; second < 5; ++second) timeline_.add(sample_at(second, 7));
  EXPECT_THAT(of_lines<double>("time_s"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(timeline_.samples_per_line(), 1u);
}

TEST_F(TimelineFile, stays_small_and_in_order_however_many_samples_there_are) {
  for (int second = 0; second < 1'000; ++second) {
    timeline_.add(sample_at(second, static_cast<Bytes>(second)));
    ASSERT_LT(lines().size(), kMostLines);
  }
  timeline_.finish();
  const auto times = of_lines<double>("time_s");
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_GE(times.size(), kMostLines / 2);
  EXPECT_EQ(times.back(), 999);
  EXPECT_EQ(timeline_.samples_per_line(), 128u);
  EXPECT_TRUE(timeline_.is_whole());
}

TEST_F(TimelineFile, keeps_short_peaks) {
  for (int second = 0; second < 1'000; ++second)
    timeline_.add(sample_at(second, second == 321 ? 900 : second == 777 ? 800 : 100));
  timeline_.finish();
  const auto resident = of_lines<Bytes>("resident_bytes");
  EXPECT_EQ(std::count(resident.begin(), resident.end(), 900), 1);
  EXPECT_EQ(std::count(resident.begin(), resident.end(), 800), 1);
}

TEST_F(TimelineFile, keeps_peaks_of_gpu_memory_at_other_moments_than_those_of_the_host) {
  for (int second = 0; second < 1'000; ++second) {
    WatchSample sample = sample_at(second, second % 2 == 0 ? 200 : 100);
    sample.gpu.emplace().used = second == 321 ? Bytes{900} : Bytes{50};
    timeline_.add(sample);
  }
  timeline_.finish();
  EXPECT_THAT(of_lines<Bytes>("resident_bytes"), Each(200));
  const auto used = of_lines<Bytes>("gpu_used_bytes");
  EXPECT_EQ(*std::max_element(used.begin(), used.end()), 900);
}

TEST_F(TimelineFile, keeps_samples_whose_shared_pages_are_known) {
  for (int second = 0; second < 1'000; ++second) {
    WatchSample sample = sample_at(second, 500);
    if (second % 10 == 0) sample.proportional = 300;
    timeline_.add(sample);
  }
  timeline_.finish();
  EXPECT_THAT(of_lines<Json>("proportional_bytes"), Each(Json(300)));
}

}  // namespace
}  // namespace headroom::timeline_test
