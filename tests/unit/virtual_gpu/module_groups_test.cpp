#include "harness/virtual_gpu/module_groups.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace headroom::virtual_gpu {
namespace {

ModuleShare module(const std::string& name, const std::string& pattern, Bytes bytes) {
  return {.name = name, .pattern = pattern, .bytes = bytes, .roles = {}};
}

std::vector<std::string> names(const std::vector<Share>& rows) {
  std::vector<std::string> result;
  for (const Share& row : rows) result.push_back(fmt::format("{} {}", row.bytes, row.name));
  return result;
}

TEST(ModuleGroups, put_modules_of_one_pattern_in_one_row) {
  EXPECT_THAT(
      names(module_groups({module("layers.0.up", "layers.*.up", 3),
                           module("layers.1.up", "layers.*.up", 4), module("head", "head", 5)},
                          8)),
      ::testing::ElementsAre("7 layers.*.up  (2 alike)", "5 head"));
}

TEST(ModuleGroups, divide_what_holds_most_where_few_rows_still_tell_nearly_all) {
  std::vector<ModuleShare> modules = {module("net.head", "net.head", 500)};
  for (int i = 0; i < 20; ++i)
    modules.push_back(
        module(fmt::format("net.body.part{}", i), fmt::format("net.body.part{}", i), 40));
  EXPECT_THAT(names(module_groups(modules, 4)),
              ::testing::ElementsAre("800 net.body  (20 modules)", "500 net.head"));
  EXPECT_EQ(module_groups(modules, 20).size(), 21u);
}

TEST(ModuleGroups, keep_what_a_module_holds_itself_apart_from_those_that_it_contains) {
  EXPECT_THAT(
      names(module_groups({module("block", "block", 6), module("block.up", "block.up", 5)}, 8)),
      ::testing::ElementsAre("6 block", "5 block.up"));
}

TEST(ModuleGroups, tell_all_bytes_of_any_modules) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<ModuleShare> modules;
    Bytes all = 0;
    for (unsigned i = 0; i < 1 + random() % 40; ++i) {
      std::string path;
      const char* separator = random() % 2 == 0 ? "." : "/";
      for (unsigned depth = random() % 5; depth-- > 0;)
        path +=
            fmt::format("{}{}", path.empty() && random() % 9 != 0 ? "" : separator, random() % 3);
      modules.push_back(module(path, path, 1 + random() % 100));
      all += modules.back().bytes;
    }
    const std::vector<Share> rows = module_groups(modules, 1 + random() % 8);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), Bytes{0},
                              [](Bytes sum, const Share& row) { return sum + row.bytes; }),
              all)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace headroom::virtual_gpu
