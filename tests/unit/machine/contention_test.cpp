#include "harness/machine/contention.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "harness/machine/probe.h"

namespace headroom::contention_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(CoreTimes, blame_others_for_no_more_than_they_ran) {
  const CoreTimes before{.waited_ns = 5, .own_ns = 7, .busy_ns = 11};
  // Three threads on two cores for a second, with no other process running.
  const CoreTimes alone{
      .waited_ns = 5 + kSecond, .own_ns = 7 + 2 * kSecond, .busy_ns = 11 + 2 * kSecond};
  EXPECT_EQ(waited_for_others_ns(before, alone), 0);
  // The same, with another process running for a quarter of the time.
  const CoreTimes visited{
      .waited_ns = 5 + kSecond, .own_ns = 7 + 2 * kSecond, .busy_ns = 11 + 9 * kSecond / 4};
  EXPECT_EQ(waited_for_others_ns(before, visited), kSecond / 4);
}

TEST(CoreTimes, do_not_mind_others_nobody_waited_for) {
  const CoreTimes before{.waited_ns = 3, .own_ns = 0, .busy_ns = 0};
  const CoreTimes after{.waited_ns = 3, .own_ns = kSecond, .busy_ns = 9 * kSecond};
  EXPECT_EQ(waited_for_others_ns(before, after), 0);
}

TEST(CoreTimes, take_all_waiting_for_others_doing_where_the_kernel_does_not_tell) {
  const CoreTimes before{.waited_ns = 3, .own_ns = 0, .busy_ns = std::nullopt};
  const CoreTimes after{.waited_ns = 8, .own_ns = kSecond, .busy_ns = std::nullopt};
  EXPECT_EQ(waited_for_others_ns(before, after), 5);
}

// The kernel's tick counts may run slightly behind or ahead.
TEST(CoreTimes, find_nobody_where_this_process_alone_seems_to_have_run_more_than_all) {
  const CoreTimes before{.waited_ns = 0, .own_ns = 0, .busy_ns = 0};
  const CoreTimes after{.waited_ns = kSecond, .own_ns = kSecond + 1, .busy_ns = kSecond};
  EXPECT_EQ(waited_for_others_ns(before, after), 0);
}

// Keeps more threads than cores busy until the kernel has counted the contention.
TEST(CoreTimes, grow_where_threads_share_cores) {
  const auto before = core_times();
  if (!before) GTEST_SKIP() << "this kernel does not count how long threads wait for a core";
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2 * usable_cores(); ++i)
    threads.emplace_back([&over] {
      while (!over) {
      }
    });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  constexpr std::uint64_t kWanted = 200'000'000;
  CoreTimes now = *before;
  while (now.waited_ns - before->waited_ns < kWanted &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    now = core_times().value_or(now);
  }
  over = true;
  EXPECT_GE(now.waited_ns - before->waited_ns, kWanted);
  EXPECT_GT(now.own_ns, before->own_ns);
  if (!now.busy_ns) GTEST_SKIP() << "this kernel does not tell what the cores do";
  EXPECT_GT(*now.busy_ns, *before->busy_ns);
}

}  // namespace
}  // namespace headroom::contention_test
