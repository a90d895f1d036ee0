// bfc against a slow model of the same rules, written without any of its data structures: regions
// are lists of chunks, and every search looks at every chunk.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <optional>
#include <random>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom::bfc_model_test {
namespace {

struct ModelChunk {
  Address address;
  Bytes size;
  bool used;
};

class Model {
 public:
  Model(DeviceMemory& memory, bool growth, bool collect)
      : memory_(memory),
        limit_(memory.capacity()),
        next_(growth ? 2 * kMiB : limit_),
        collect_(collect) {}

  std::optional<ModelChunk> allocate(Bytes bytes) {
    const Bytes need = (bytes + 255) / 256 * 256;
    auto served = find(need);
    if (!served && extend(need)) served = find(need);
    if (!served && collect_idle(need) && extend(need)) served = find(need);
    return served;
  }

  void free(Address address) {
    for (Region& region : regions_) {
      for (ModelChunk& chunk : region.chunks) {
        if (chunk.address == address) chunk.used = false;
      }
      for (auto left = region.chunks.begin(); left != region.chunks.end();) {
        const auto right = std::next(left);
        if (right != region.chunks.end() && !left->used && !right->used) {
          left->size += right->size;
          region.chunks.erase(right);
        } else {
          left = right;
        }
      }
    }
  }

 private:
  struct Region {
    Segment segment;
    std::list<ModelChunk> chunks;
  };

  std::optional<ModelChunk> find(Bytes need) {
    Region* home = nullptr;
    std::list<ModelChunk>::iterator best;
    for (Region& region : regions_) {
      for (auto chunk = region.chunks.begin(); chunk != region.chunks.end(); ++chunk) {
        if (chunk->used || chunk->size < need) continue;
        if (home == nullptr || chunk->size < best->size ||
            (chunk->size == best->size && chunk->address < best->address)) {
          home = &region;
          best = chunk;
        }
      }
    }
    if (home == nullptr) return std::nullopt;
    if (best->size >= need * 2 || best->size - need >= 128 * kMiB) {
      home->chunks.insert(std::next(best), {best->address + need, best->size - need, false});
      best->size = need;
    }
    best->used = true;
    return *best;
  }

  Bytes pool() const {
    Bytes sum = 0;
    for (const Region& region : regions_) sum += region.segment.size;
    return sum;
  }

  bool extend(Bytes need) {
    const Bytes available = (limit_ - pool()) / 256 * 256;
    if (need > available) return false;
    bool grew = false;
    for (; need > next_; grew = true) next_ *= 2;
    const Bytes bytes = std::min(next_, available);  // the device always has what the limit allows
    const Segment segment = memory_.allocate(bytes);
    if (!grew) next_ *= 2;
    regions_.push_back({segment, {{segment.address, segment.size, false}}});
    return true;
  }

  bool collect_idle(Bytes need) {
    if (!collect_) return false;
    const auto idle = [](const Region& region) {
      return std::none_of(region.chunks.begin(), region.chunks.end(),
                          [](const ModelChunk& chunk) { return chunk.used; });
    };
    Bytes sum = 0;
    for (const Region& region : regions_) sum += idle(region) ? region.segment.size : 0;
    if (sum == 0 || need > limit_ - pool() + sum) return false;
    for (const Region& region : regions_) {
      if (idle(region)) memory_.free(region.segment);
    }
    regions_.remove_if(idle);
    return true;
  }

  DeviceMemory& memory_;
  Bytes limit_;
  Bytes next_;
  bool collect_;
  std::list<Region> regions_;
};

struct Setting {
  const char* spec;
  bool growth;
  bool collect;
};

class BfcModel : public ::testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(
    Settings, BfcModel,
    ::testing::Values(Setting{"bfc", false, true}, Setting{"bfc(growth=on)", true, true},
                      Setting{"bfc(garbage_collection=off,growth=on)", true, false}));

TEST_P(BfcModel, serves_every_request_from_the_same_address) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const Spec device = Spec::parse("meta(capacity=1GiB)");
  const auto for_model = make_device(device);
  const auto for_bfc = make_device(device);
  Model model(for_model->memory(), GetParam().growth, GetParam().collect);
  const auto bfc = make_allocator(Spec::parse(GetParam().spec), for_bfc->memory());
  std::vector<Block> live;
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const double exponent = std::uniform_real_distribution<double>(6, 28)(random);
      const auto bytes = static_cast<Bytes>(std::exp2(exponent));
      const auto expected = model.allocate(bytes);
      try {
        const Block block = bfc->allocate(bytes, {});
        ASSERT_TRUE(expected.has_value()) << "request " << i << " of " << bytes;
        ASSERT_EQ(block.address, expected->address) << "request " << i << " of " << bytes;
        ASSERT_EQ(block.size, expected->size) << "request " << i << " of " << bytes;
        live.push_back(block);
      } catch (const OutOfMemory&) {
        ASSERT_FALSE(expected.has_value()) << "request " << i << " of " << bytes;
        ++refused;
      }
    } else {
      std::swap(live[random() % live.size()], live.back());
      model.free(live.back().address);
      bfc->deallocate(live.back());
      live.pop_back();
    }
  }
  EXPECT_GT(refused, 0) << "the memory never ran short, so the last resorts were not compared";
  EXPECT_EQ(for_bfc->memory().counters().segment_frees,
            for_model->memory().counters().segment_frees);
}

}  // namespace
}  // namespace headroom::bfc_model_test
