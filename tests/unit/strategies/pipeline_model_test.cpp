// Random pipelines over random data, compared with a single-threaded model of their output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/support/numbered_records.h"

namespace headroom::testing::pipeline_model_test {
namespace {

struct Drawn {
  NumberedData data;
  std::string spec;
  std::int64_t buffer = 0;  // buffer of shuffle; 0: none
  bool in_order = true;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  Drawn operator()() {
    Drawn drawn;
    drawn.data.batch = between(1, 6);
    drawn.data.count = drawn.data.batch + between(0, 30);
    drawn.data.epoch_end = one_in(2) ? EpochEnd::new_batch : EpochEnd::seamless;
    const auto threads = std::to_string(between(1, 4));
    std::vector<std::string> stages;
    if (one_in(4)) stages.push_back(numbered("staging", 3));
    if (one_in(2)) stages.push_back(one_in(3) ? "prefetch(auto)" : numbered("prefetch", 4));
    if (one_in(3)) stages.push_back(numbered("prefetch", 2));
    if (one_in(4)) stages.emplace_back("batch");
    if (one_in(2)) {
      drawn.in_order = one_in(2);
      stages.push_back(drawn.in_order ? "map(threads=" + threads + ")"
                                      : "map(ordered=off,threads=" + threads + ")");
    }
    if (one_in(3)) {
      drawn.buffer = between(1, 20);
      stages.push_back("shuffle(" + std::to_string(drawn.buffer) + ")");
    }
    if (one_in(3)) stages.push_back(numbered("interleave", 3));
    if (one_in(3)) stages.emplace_back("cache");
    stages.emplace_back(one_in(2) ? "memory" : "stream");
    for (const std::string& stage : stages) drawn.spec += (drawn.spec.empty() ? "" : "|") + stage;
    return drawn;
  }

 private:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  std::string numbered(const std::string& name, std::int64_t most) {
    return name + "(" + std::to_string(between(1, most)) + ")";
  }

  std::mt19937_64 random_;
};

// The number of records of each epoch that the stream delivers: all of them, or as many as fill
// whole batches if batches do not span epochs.
std::int64_t shown_of_an_epoch(const NumberedData& data) {
  return data.epoch_end == EpochEnd::seamless ? data.count : data.count / data.batch * data.batch;
}

std::vector<Number> of_epoch(const std::vector<Number>& shown, const NumberedData& data,
                             std::int64_t epoch) {
  const auto first = static_cast<std::ptrdiff_t>(epoch * shown_of_an_epoch(data));
  return {shown.begin() + first, shown.begin() + first + shown_of_an_epoch(data)};
}

// Each record appears once; with a buffer of n, none more than n − 1 places early.
void expect_a_permutation(const std::vector<Number>& epoch, const Drawn& drawn) {
  EXPECT_EQ(std::set<Number>(epoch.begin(), epoch.end()).size(), epoch.size());
  if (drawn.buffer == 0 || !drawn.in_order) return;
  for (std::size_t place = 0; place < epoch.size(); ++place)
    EXPECT_LT(epoch[place], static_cast<Number>(place) + drawn.buffer);
}

void judge(const Drawn& drawn, std::uint64_t seed) {
  constexpr std::int64_t kEpochs = 3;
  const NumberedWorkload workload(drawn.data);
  const auto pipeline = pipeline_over(workload, drawn.spec, seed);
  std::vector<Number> shown;
  while (static_cast<std::int64_t>(shown.size()) < kEpochs * shown_of_an_epoch(drawn.data)) {
    const auto batch = next_batch(*pipeline, drawn.data.batch);
    shown.insert(shown.end(), batch.begin(), batch.end());
  }
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<Number> found = of_epoch(shown, drawn.data, epoch);
    if (drawn.buffer > 0 || !drawn.in_order) {
      expect_a_permutation(found, drawn);
    } else {
      std::vector<Number> wanted = own_order(drawn.data.count, epoch);
      wanted.resize(found.size());
      EXPECT_EQ(found, wanted) << "epoch " << epoch + 1;
    }
  }
}

TEST(PipelineModel, every_composition_shows_the_records_that_a_single_thread_would_show) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 seeds(seed);
  for (int round = 0; round < 150 && !::testing::Test::HasFailure(); ++round) {
    const std::uint64_t drawn_from = seeds();
    const Drawn drawn = Draw(drawn_from)();
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed << ", round " << round << ": " << drawn.spec << ", "
                 << drawn.data.count << " records in batches of " << drawn.data.batch
                 << (drawn.data.epoch_end == EpochEnd::seamless ? "" : ", no seam"));
    judge(drawn, drawn_from);
  }
}

TEST(PipelineModel, a_shuffle_is_the_same_for_the_same_seed_and_another_for_another) {
  const NumberedWorkload workload({.count = 30, .batch = 30});
  const auto shuffled = [&](const std::string& spec, std::uint64_t seed) {
    return next_batch(*pipeline_over(workload, spec, seed), 30);
  };
  EXPECT_EQ(shuffled("shuffle(10)|stream", 5),
            shuffled("prefetch(2)|map(threads=3)|shuffle(10)|cache|memory", 5));
  EXPECT_NE(shuffled("shuffle(10)|stream", 5), shuffled("shuffle(10)|stream", 6));
}

}  // namespace
}  // namespace headroom::testing::pipeline_model_test
