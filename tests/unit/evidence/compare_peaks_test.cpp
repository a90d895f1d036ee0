#include "harness/evidence/compare_peaks.h"

#include <gtest/gtest.h>

namespace headroom::compare_peaks_test {
namespace {

using Names = std::map<std::string, Bytes>;
using Held = PeakChange::Held;

PeakMemory with_lines(const Names& lines) {
  PeakMemory peak;
  for (const auto& [name, bytes] : lines) peak.allocated = peak.allocated.value_or(0) + bytes;
  peak.parts["line"] = lines;
  return peak;
}

// Later name → bytes before and now, of the lines that changed.
std::map<std::string, Held> changed(const Names& before, const Names& now) {
  std::map<std::string, Held> result;
  for (const auto& part : compare_peaks(with_lines(before), with_lines(now)).parts)
    result[part.name] = part.held;
  return result;
}

TEST(ComparePeaks, names_what_grew_and_what_shrank_the_most_grown_first) {
  const auto change =
      compare_peaks(with_lines({{"a.py:1 f", 10}, {"b.py:1 g", 20}, {"c.py:1 h", 5}}),
                    with_lines({{"a.py:1 f", 11}, {"b.py:1 g", 2}, {"d.py:1 i", 40}}));
  std::vector<std::string> names;
  for (const auto& part : change.parts) names.push_back(part.name);
  EXPECT_EQ(names, (std::vector<std::string>{"d.py:1 i", "a.py:1 f", "c.py:1 h", "b.py:1 g"}));
  EXPECT_EQ(change.allocated, (Held{35, 53}));
}

TEST(ComparePeaks, recognises_lines_below_an_inserted_one) {
  EXPECT_EQ(changed({{"m.py:10 forward", 100}, {"m.py:11 forward", 200}, {"m.py:12 forward", 300}},
                    {{"m.py:10 forward", 100},
                     {"m.py:11 forward", 70},
                     {"m.py:12 forward", 200},
                     {"m.py:13 forward", 300}}),
            (std::map<std::string, Held>{{"m.py:11 forward", {0, 70}}}));
}

TEST(ComparePeaks, recognises_lines_that_moved_and_changed_all_at_once) {
  const auto change =
      compare_peaks(with_lines({{"m.py:10 forward", 100}, {"m.py:20 forward", 200}}),
                    with_lines({{"m.py:12 forward", 150}, {"m.py:22 forward", 300}}));
  ASSERT_EQ(change.parts.size(), 2U);
  EXPECT_EQ(change.parts[0].name, "m.py:22 forward");
  EXPECT_EQ(change.parts[0].before, "m.py:20 forward");
  EXPECT_EQ(change.parts[0].held, (Held{200, 300}));
}

TEST(ComparePeaks, compares_a_line_with_itself_where_no_line_moved) {
  EXPECT_EQ(changed({{"m.py:1 f", 100}, {"m.py:2 f", 200}}, {{"m.py:1 f", 200}, {"m.py:2 f", 100}}),
            (std::map<std::string, Held>{{"m.py:1 f", {100, 200}}, {"m.py:2 f", {200, 100}}}));
}

TEST(ComparePeaks, accounts_for_every_byte_of_the_difference) {
  const Names before = {{"m.py:3 f", 7}, {"m.py:4 f", 9}, {"m.py:9 f", 9}, {"", 5}, {"conv1", 2}};
  const Names now = {
      {"m.py:4 f", 9}, {"m.py:5 f", 1}, {"m.py:6 f", 7}, {"m.py:10 f", 9}, {"fc", 3}};
  std::int64_t sum = 0;
  for (const auto& [name, held] : changed(before, now))
    sum += static_cast<std::int64_t>(held.now) - static_cast<std::int64_t>(held.before);
  EXPECT_EQ(sum, 29 - 32);
}

TEST(ComparePeaks, does_not_compare_a_figure_that_one_of_them_lacks) {
  PeakMemory before = with_lines({{"a.py:1 f", 10}});
  before.reserved = 64;
  const auto change = compare_peaks(before, with_lines({{"a.py:1 f", 10}}));
  EXPECT_FALSE(change.reserved);
  EXPECT_EQ(change.direction(), PeakChange::Direction::same);
}

TEST(ComparePeaks, says_so_where_allocated_and_reserved_bytes_disagree) {
  const auto change = compare_peaks({.allocated = 10, .reserved = 20, .parts = {}},
                                    {.allocated = 9, .reserved = 30, .parts = {}});
  EXPECT_EQ(change.direction(), PeakChange::Direction::mixed);
  EXPECT_TRUE(change.grew());
}

}  // namespace
}  // namespace headroom::compare_peaks_test
