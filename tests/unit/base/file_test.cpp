#include "harness/base/file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/base/scratch_directory.h"

namespace headroom::file_test {
namespace {

using namespace std::chrono_literals;

// Keeps this thread busy for that long.
void compute(std::chrono::nanoseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto end = used() + time;
  while (used() < end) continue;
}

TEST(ReadingTime, ends_the_program_and_names_the_file) {
  EXPECT_EXIT(
      {
        const ReadingTime bounded("a\x1b.json", 1s);
        compute(1h);
      },
      ::testing::ExitedWithCode(2), "headroom: a.x1b.json: reading it took more than 1 s");
}

TEST(ReadingTime, bounds_nothing_that_follows) {
  { const ReadingTime bounded("file", 50ms); }
  compute(200ms);
}

TEST(ReadingTime, counts_no_other_threads) {
  const ReadingTime bounded("file", 500ms);
  std::thread(compute, 1s).join();
}

TEST(ReadingTime, grows_with_the_file) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "file";
  std::ofstream(file).close();
  EXPECT_EQ(longest_reading(file), 60s);
  std::filesystem::resize_file(file, 1U << 20);
  EXPECT_EQ(longest_reading(file), 68s);
  EXPECT_EQ(longest_reading(scratch.path() / "not there"), 60s);
}

}  // namespace
}  // namespace headroom::file_test
