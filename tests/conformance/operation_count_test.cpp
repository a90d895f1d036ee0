// How the work of a strategy grows with the number of live blocks: at most logarithmically, up to a
// hundred thousand blocks. The test counts control-flow edges, not time, in allocators built a
// second time with -fsanitize-coverage=trace-pc, and the words that they move in memory. So the
// result is the same on every machine and under every load.
//
// Runs on meta, because the host's kernel maps at most 65,530 areas, which `malloc` would exceed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "tests/test_name.h"

namespace {
std::uint64_t operations = 0;
}  // namespace

extern "C" {
void __sanitizer_cov_trace_pc() { ++operations; }

// The linker redirects every memmove here (--wrap), because shifting a long row is work, too.
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  operations += bytes / sizeof(std::uint64_t);
  return __real_memmove(to, from, bytes);
}
}

namespace headroom {
namespace {

constexpr std::size_t kMost = 100'000;

// Keeps a number of blocks of 256 B to 64 KiB alive, and frees and replaces random ones.
class Load {
 public:
  explicit Load(const std::string& spec)
      : device_(make_device(Spec("meta", {{"capacity", "4TiB"}}))),
        allocator_(make_allocator(Spec::parse_composition(spec), device_->memory())) {}

  // One block in four is freed on the way, which leaves holes of every size.
  void grow_to(std::size_t blocks) {
    while (live_.size() < blocks) {
      for (int i = 0; i < 4; ++i) allocate();
      free_one();
    }
  }

  // The operations of one free and one allocation: the 95th percentile over pairs. The other pairs
  // may pay for a growing table.
  std::uint64_t operations_per_pair() {
    constexpr std::size_t kPairs = 2000;
    std::vector<std::uint64_t> counts;
    for (std::size_t i = 0; i < kPairs; ++i) {
      const std::uint64_t before = operations;
      free_one();
      allocate();
      counts.push_back(operations - before);
    }
    std::sort(counts.begin(), counts.end());
    return counts[kPairs * 19 / 20];
  }

 private:
  void allocate() {
    const double exponent = std::uniform_real_distribution<double>(8, 16)(random_);
    const auto bytes = static_cast<Bytes>(std::exp2(exponent));
    live_.push_back(allocator_->allocate(bytes, {}));
  }
  void free_one() {
    std::swap(live_[random_() % live_.size()], live_.back());
    const Block block = live_.back();
    live_.pop_back();
    allocator_->deallocate(block);
  }

  std::mt19937_64 random_{std::random_device{}()};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> allocator_;
  std::vector<Block> live_;
};

// Tests a spec from a thousand live blocks to `most`. Returns "" when the operations per pair grow
// at most as the logarithm of the blocks, with a factor of 1.5 for differences between loads. Up to
// kAlwaysFine every result passes, because growth there only shows that trees replace short rows.
std::string excess_over_logarithm(const std::string& spec, std::size_t most) {
  constexpr std::size_t kFewest = 1000;
  constexpr double kAlwaysFine = 300;
  Load load(spec);
  load.grow_to(kFewest);
  const std::uint64_t first = load.operations_per_pair();
  for (std::size_t blocks = 10 * kFewest; blocks <= most; blocks *= 10) {
    load.grow_to(blocks);
    const std::uint64_t count = load.operations_per_pair();
    const double logarithms = std::log(blocks) / std::log(kFewest);
    const double allowed = std::max(kAlwaysFine, 1.5 * logarithms * static_cast<double>(first));
    if (static_cast<double>(count) > allowed)
      return fmt::format("{} operations per pair at {} blocks, {} at {}", first, kFewest, count,
                         blocks);
  }
  return "";
}

// Examples configured to hold fewer than a hundred thousand blocks.
const std::map<std::string, const char*>& too_small() {
  static const std::map<std::string, const char*> examples = {
      {"guard(activation=1GiB,backward=2GiB)|bfc(growth=on)", "its budget is 1 GiB"},
      {"limit(64MiB)|caching", "its limit is 64 MiB"},
      {"pool(initial=2MiB,maximum=48MiB)", "its maximum is 48 MiB"}};
  return examples;
}

class OperationCount : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Every, OperationCount, ::testing::ValuesIn(allocator_examples()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(OperationCount, grows_at_most_as_the_logarithm_of_the_live_blocks) {
  if (const auto found = too_small().find(GetParam()); found != too_small().end())
    GTEST_SKIP() << "cannot hold a hundred thousand blocks: " << found->second;
  const Spec whole = Spec::parse_composition(GetParam());
  const auto& strategy = Registry<AllocatorStrategy>::instance().find(whole.innermost().name());
  if (!strategy.linear_because.empty()) GTEST_SKIP() << "linear: " << strategy.linear_because;
  EXPECT_EQ(excess_over_logarithm(GetParam(), kMost), "");
}

// Shows that the test above detects a scan.
TEST(OperationCountOfAScan, grows_faster_than_the_logarithm) {
  EXPECT_NE(excess_over_logarithm("arena", kMost), "");
}

}  // namespace
}  // namespace headroom
