#include "strategies/allocator/best_fit_index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "harness/base/error.h"

namespace headroom {
namespace {

TEST(BestFitIndex, takes_the_smallest_that_is_large_enough) {
  BestFitIndex index;
  index.insert({512, 1, 10});
  index.insert({1024, 2, 20});
  index.insert({256, 3, 30});
  BestFitIndex::Entry taken;
  ASSERT_TRUE(index.take_at_least(300, taken));
  EXPECT_EQ(taken.handle, 10u);
  ASSERT_TRUE(index.take_at_least(300, taken));
  EXPECT_EQ(taken.handle, 20u);
  EXPECT_FALSE(index.take_at_least(300, taken));
  EXPECT_EQ(index.largest(), 256u);
}

TEST(BestFitIndex, takes_the_lowest_address_among_equal_sizes) {
  BestFitIndex index;
  for (const Address address : {7u, 3u, 9u, 5u}) index.insert({256, address, 0});
  BestFitIndex::Entry taken;
  std::vector<Address> order;
  while (index.take_at_least(1, taken)) order.push_back(taken.address);
  EXPECT_EQ(order, (std::vector<Address>{3, 5, 7, 9}));
}

TEST(BestFitIndex, says_so_when_an_entry_to_be_taken_out_is_not_there) {
  BestFitIndex index;
  EXPECT_THROW(index.erase(256, 1), Error);
  index.insert({256, 1, 0});
  EXPECT_THROW(index.erase(256, 2), Error);
  EXPECT_THROW(index.erase(512, 1), Error);
}

// Against the standard ordered set, from empty to thousands of entries and back, twice.
TEST(BestFitIndex, agrees_with_an_ordered_set_at_every_fill) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  BestFitIndex index;
  std::set<std::pair<Bytes, Address>> model;
  for (const std::size_t fill : {40u, 5u, 5000u, 0u, 3000u, 10u}) {
    while (model.size() != fill) {
      const bool grow = model.size() < fill ? random() % 8 != 0 : random() % 8 == 0;
      const Bytes size = random() % 64 * 256;
      if (grow) {
        const Address address = random();
        index.insert({size, address, static_cast<std::uint32_t>(address)});
        model.emplace(size, address);
      } else if (random() % 2 == 0) {
        BestFitIndex::Entry taken;
        const auto expected = model.lower_bound({size, 0});
        ASSERT_EQ(index.take_at_least(size, taken), expected != model.end());
        if (expected == model.end()) continue;
        ASSERT_EQ(taken.size, expected->first);
        ASSERT_EQ(taken.address, expected->second);
        ASSERT_EQ(taken.handle, static_cast<std::uint32_t>(expected->second));
        model.erase(expected);
      } else if (!model.empty()) {
        auto chosen = model.lower_bound({size, 0});
        if (chosen == model.end()) chosen = model.begin();
        index.erase(chosen->first, chosen->second);
        model.erase(chosen);
      }
      ASSERT_EQ(index.largest(), model.empty() ? 0 : model.rbegin()->first);
    }
  }
}

}  // namespace
}  // namespace headroom
