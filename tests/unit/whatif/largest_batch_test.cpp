// The search for the largest batch, compared with trying every batch.
#include "harness/whatif/largest_batch.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/unit/reference/reference.h"

namespace headroom::largest_batch_test {
namespace {

// Two of three batches up to `bound` fit, in random order; none above fits.
BatchFits comes_and_goes(std::mt19937_64& random, std::int64_t bound) {
  std::vector<bool> fit(static_cast<std::size_t>(bound) + 2, false);
  for (std::int64_t batch = 1; batch <= bound; ++batch)
    fit[static_cast<std::size_t>(batch)] = random() % 3 > 0;
  return [fit](std::int64_t batch) { return fit.at(static_cast<std::size_t>(batch)); };
}

TEST(LargestBatch, of_something_monotone_is_the_one_before_the_first_that_does_not_fit) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto last = static_cast<std::int64_t>(random() % 300);
    const auto start = 1 + static_cast<std::int64_t>(random() % 300);
    const BatchFits fits = [&](std::int64_t batch) { return batch <= last; };
    EXPECT_EQ(find_last_batch(start, fits), last) << "from " << start;
    EXPECT_EQ(find_largest_batch(last + static_cast<std::int64_t>(random() % 100), fits).batch,
              last);
  }
}

TEST(LargestBatch, fits_and_the_next_one_does_not_where_feasibility_comes_and_goes) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto bound = static_cast<std::int64_t>(random() % 60);
    const BatchFits fits = comes_and_goes(random, bound);
    const LargestBatch found = find_largest_batch(bound, fits);
    if (found.batch == 0) {
      EXPECT_FALSE(bound >= 1 && fits(1) && fits(bound));
      continue;
    }
    EXPECT_TRUE(fits(found.batch));
    EXPECT_FALSE(fits(found.batch + 1));
  }
}

TEST(LargestBatch, near_the_bound_is_found_in_a_few_attempts) {
  const auto found = find_largest_batch(1'000'000, [](std::int64_t b) { return b <= 999'990; });
  EXPECT_EQ(found.batch, 999'990);
  EXPECT_LE(found.tried, 10);
}

TEST(LargestBatch, is_none_where_not_even_one_sample_fits) {
  const BatchFits never = [](std::int64_t) { return false; };
  EXPECT_EQ(find_last_batch(32, never), 0);
  EXPECT_EQ(find_largest_batch(7, never).batch, 0);
  EXPECT_EQ(find_largest_batch(0, never).tried, 0);
}

TEST(LargestBatch, and_every_hole_below_it_are_found_where_each_batch_is_tried) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto bound = static_cast<std::int64_t>(random() % 60);
    const BatchFits fits = comes_and_goes(random, bound);
    std::int64_t largest = 0;
    for (std::int64_t batch = 1; batch <= bound; ++batch)
      if (fits(batch)) largest = batch;
    std::vector<std::int64_t> holes;
    for (std::int64_t batch = 1; batch < largest; ++batch)
      if (!fits(batch)) holes.push_back(batch);
    const BatchSearch found = search_batches(bound, 60, fits);
    EXPECT_EQ(found.largest, largest);
    EXPECT_EQ(found.holes, holes);
    EXPECT_EQ(found.tried, bound);
  }
}

TEST(LargestBatch, on_a_coarse_grid_fits_and_the_next_one_does_not) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto bound = 1 + static_cast<std::int64_t>(random() % 5000);
    const auto last = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound + 1));
    const auto hole = static_cast<std::int64_t>(random() % 5000);
    const BatchFits fits = [&](std::int64_t batch) { return batch <= last && batch != hole; };
    const BatchSearch found = search_batches(bound, 10, fits);
    if (found.largest == 0) continue;
    EXPECT_TRUE(fits(found.largest));
    EXPECT_FALSE(fits(found.largest + 1));
    for (const std::int64_t batch : found.holes) EXPECT_EQ(batch, hole);
    EXPECT_LE(found.tried, 60);
  }
}

}  // namespace
}  // namespace headroom::largest_batch_test
