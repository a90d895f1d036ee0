#include "strategies/allocator/parts/best_fit_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace headroom::best_fit_index_test {
namespace {

class BestFitIndexTest : public ::testing::Test {
 protected:
  ChunkHandle add(Bytes size, Address address) {
    const ChunkHandle handle = chunks.add();
    chunks[handle] = {.address = address, .size = size};
    return handle;
  }
  ChunkHandle insert(Bytes size, Address address) {
    const ChunkHandle handle = add(size, address);
    index.insert(handle);
    return handle;
  }

  Chunks chunks;
  BestFitIndex index{chunks};
};

TEST_F(BestFitIndexTest, takes_the_smallest_that_is_large_enough) {
  const ChunkHandle middle = insert(512, 1);
  const ChunkHandle largest = insert(1024, 2);
  insert(256, 3);
  EXPECT_EQ(index.take_at_least(300), middle);
  EXPECT_EQ(index.take_at_least(300), largest);
  EXPECT_EQ(index.take_at_least(300), kNoChunk);
  EXPECT_EQ(index.largest(), 256u);
}

TEST_F(BestFitIndexTest, takes_the_lowest_address_among_equal_sizes) {
  for (const Address address : {7u, 3u, 9u, 5u}) insert(256, address);
  std::vector<Address> order;
  for (ChunkHandle taken; (taken = index.take_at_least(1)) != kNoChunk;)
    order.push_back(chunks[taken].address);
  EXPECT_EQ(order, (std::vector<Address>{3, 5, 7, 9}));
}

TEST_F(BestFitIndexTest, says_so_when_a_chunk_to_be_taken_out_is_not_there) {
  const ChunkHandle taken = insert(256, 1);
  index.erase(taken);
  EXPECT_THROW(index.erase(taken), Error);
  insert(256, 2);
  EXPECT_THROW(index.erase(taken), Error);
  EXPECT_THROW(index.erase(add(512, 3)), Error);
  for (Address address = 4; address < 100; ++address) insert(256, address);
  EXPECT_THROW(index.erase(taken), Error);
}

// Compared with the standard ordered map, from empty to thousands of entries and back, twice.
TEST_F(BestFitIndexTest, agrees_with_an_ordered_map_at_every_fill) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::map<std::pair<Bytes, Address>, ChunkHandle> model;
  const auto handle_at = [&](auto place) {
    return place == model.end() ? kNoChunk : place->second;
  };
  const auto give_up = [&](auto place) {
    chunks.drop(handle_at(place));
    model.erase(place);
  };
  for (const std::size_t fill : {40u, 5u, 5000u, 0u, 3000u, 10u}) {
    while (model.size() != fill) {
      const bool grow = model.size() < fill ? random() % 8 != 0 : random() % 8 == 0;
      const Bytes size = random() % 64 * 256;
      auto chosen = model.lower_bound({size, 0});
      ASSERT_EQ(index.find_from(size, 0), handle_at(chosen));
      if (grow) {
        const Address address = random();
        model[{size, address}] = insert(size, address);
      } else if (random() % 2 == 0) {
        ASSERT_EQ(index.take_at_least(size), handle_at(chosen));
        if (chosen != model.end()) give_up(chosen);
      } else if (random() % 2 == 0) {
        const auto last = model.empty() ? model.end() : std::prev(model.end());
        ASSERT_EQ(index.take_largest(), handle_at(last));
        if (last != model.end()) give_up(last);
      } else if (!model.empty()) {
        if (chosen == model.end()) chosen = model.begin();
        index.erase(handle_at(chosen));
        give_up(chosen);
      }
      ASSERT_EQ(index.largest(), model.empty() ? 0 : model.rbegin()->first.first);
    }
    std::vector<ChunkHandle> expected;
    for (const auto& [key, handle] : model) expected.push_back(handle);
    ASSERT_EQ(index.all(), expected);
    std::reverse(expected.begin(), expected.end());
    expected.resize(std::min<std::size_t>(expected.size(), 20));
    ASSERT_EQ(index.last(20), expected);
  }
}

}  // namespace
}  // namespace headroom::best_fit_index_test
