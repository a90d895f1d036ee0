#include "harness/trace/retained_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "harness/base/error.h"

namespace headroom::retained_blocks_test {
namespace {

class RetainedBlocks : public ::testing::Test {
 protected:
  void take(std::int32_t step, Role role, std::uint32_t op, Bytes bytes) {
    TraceEvent event;
    event.kind = EventKind::alloc;
    event.role = role;
    event.op = op;
    event.id = next_id_++;
    event.step = step;
    event.requested = event.size = bytes;
    trace_.events.push_back(event);
  }
  void give_back(std::uint32_t id, std::int32_t step) {
    for (const TraceEvent& taken : trace_.events) {
      if (taken.kind != EventKind::alloc || taken.id != id) continue;
      TraceEvent event = taken;
      event.kind = EventKind::free;
      event.step = step;
      trace_.events.push_back(event);
      return;
    }
  }

  Trace trace_{.header = {}, .events = {}, .op_names = {"convolve", "loss"}};
  std::uint32_t next_id_ = 1;
};

TEST_F(RetainedBlocks, name_the_role_and_the_op_that_leave_something_behind) {
  for (std::int32_t step = 1; step <= 12; ++step) {
    take(step, Role::activation, 0, 1000);
    give_back(next_id_ - 1, step);
    take(step, Role::result, 1, 64);  // a list of losses that keeps growing
  }
  const auto sites = find_retained(trace_, 2);
  ASSERT_EQ(sites.size(), 1U);
  EXPECT_EQ(sites[0].role, Role::result);
  EXPECT_EQ(sites[0].op, "loss");
  EXPECT_EQ(sites[0].bytes_per_step, 64);
  EXPECT_EQ(sites[0].growth.verdict, LeakVerdict::leak);
  EXPECT_EQ(sites[0].growth.slope, 64);
}

TEST_F(RetainedBlocks, of_a_ring_are_retained_and_do_not_grow) {
  for (std::int32_t step = 1; step <= 20; ++step) {
    take(step, Role::input, kNoOp, 500);
    if (step > 3) give_back(next_id_ - 4, step);
  }
  const auto sites = find_retained(trace_, 4);
  ASSERT_EQ(sites.size(), 1U);
  EXPECT_EQ(sites[0].op, "");
  EXPECT_EQ(sites[0].bytes_per_step, 500);
  EXPECT_EQ(sites[0].growth.verdict, LeakVerdict::no_leak);
}

TEST_F(RetainedBlocks, are_not_those_of_set_up_and_warm_up) {
  for (std::int32_t step = 0; step <= 2; ++step) take(step, Role::weight, kNoOp, 4096);
  take(12, Role::activation, 0, 1);
  give_back(next_id_ - 1, 12);
  EXPECT_TRUE(find_retained(trace_, 2).empty());
}

TEST_F(RetainedBlocks, are_none_where_the_trace_is_too_short_to_tell) {
  take(1, Role::activation, 0, 10);
  EXPECT_TRUE(find_retained(trace_, 1).empty());
  EXPECT_TRUE(find_retained({}, 0).empty());
}

TEST_F(RetainedBlocks, are_what_looking_at_each_step_finds) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::int32_t kSteps = 30;
  constexpr int kWarmup = 3;
  constexpr int kLater = 2;
  std::map<std::uint32_t, TraceEvent> live;
  // The blocks that live after steps 0, 1, …
  std::vector<std::map<std::uint32_t, TraceEvent>> after;
  for (std::int32_t step = 0; step <= kSteps; ++step) {
    for (int i = 0; i < 20; ++i) {
      if (!live.empty() && random() % 5 < 2) {
        const auto gone = std::next(live.begin(), static_cast<long>(random() % live.size()));
        give_back(gone->first, step);
        live.erase(gone);
      } else {
        take(step, static_cast<Role>(random() % kRoleCount),
             static_cast<std::uint32_t>(random() % 2), 1 + random() % 1000);
        live.emplace(next_id_ - 1, trace_.events.back());
      }
    }
    after.push_back(live);
  }
  std::map<std::pair<Role, std::string>, std::pair<std::size_t, Bytes>> expected;
  for (std::int32_t step = kWarmup + 1; step + kLater <= kSteps; ++step)
    for (const auto& [id, block] : after[static_cast<std::size_t>(step + kLater)])
      if (block.step == step) {
        auto& [blocks, bytes] = expected[{block.role, trace_.op_names[block.op]}];
        ++blocks;
        bytes += block.requested;
      }
  const auto sites = find_retained(trace_, kWarmup, kLater);
  EXPECT_EQ(sites.size(), expected.size());
  for (const RetainedSite& site : sites) {
    const auto& [blocks, bytes] = expected[{site.role, site.op}];
    EXPECT_EQ(site.blocks, blocks);
    EXPECT_EQ(site.bytes, bytes);
  }
}

TEST_F(RetainedBlocks, are_not_looked_for_in_the_step_itself) {
  EXPECT_THROW(find_retained(trace_, 0, 0), Error);
  EXPECT_THROW(find_retained(trace_, -1, 1), Error);
}

TEST_F(RetainedBlocks, make_live_bytes_grow_by_what_they_hold) {
  take(0, Role::weight, kNoOp, 5000);
  for (std::int32_t step = 1; step <= 12; ++step) {
    take(step, Role::activation, 0, 1000);
    give_back(next_id_ - 1, step);
    take(step, Role::result, 1, 64);
  }
  const LeakFinding growth = growth_of_live_bytes(trace_, 2);
  EXPECT_EQ(growth.verdict, LeakVerdict::leak);
  EXPECT_EQ(growth.slope, 64);
}

TEST_F(RetainedBlocks, are_found_in_windows_where_a_history_does_not_tell_steps_apart) {
  for (int round = 0; round < 100; ++round) {
    take(0, Role::activation, 0, 1000);
    give_back(next_id_ - 1, 0);
    take(0, Role::result, 1, 64);
  }
  EXPECT_TRUE(find_retained(trace_, 0).empty());
  const Trace cut = cut_into_windows(trace_, 20);
  EXPECT_EQ(cut.events.front().step, 1);
  EXPECT_EQ(cut.events.back().step, 20);
  const auto sites = find_retained(cut, 5);
  ASSERT_EQ(sites.size(), 1U);
  EXPECT_EQ(sites[0].op, "loss");
  EXPECT_EQ(sites[0].growth.verdict, LeakVerdict::leak);
  EXPECT_EQ(sites[0].most_held, 6400U);
}

}  // namespace
}  // namespace headroom::retained_blocks_test
