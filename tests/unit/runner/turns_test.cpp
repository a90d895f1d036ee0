#include "harness/runner/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <set>

#include "harness/base/error.h"
#include "harness/base/subprocess.h"

namespace headroom::turns_test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Cell cell_on(const std::string& device) {
  Cell cell;
  cell.workload = Spec::parse("resnet(batch=2,depth=18,width=8)");
  cell.device = Spec::parse(device);
  cell.allocator = Spec::parse("malloc");
  return cell;
}

std::string why_no_turns_of_two(const Cell& cell) { return why_no_turns({&cell, &cell}); }

TEST(Turns, mirror_the_order_of_a_round_in_the_next) {
  const std::uint64_t seed = std::random_device{}();
  for (std::size_t round = 0; round < 20; round += 2) {
    auto mirrored = turn_order(seed, 3, round + 1);
    std::reverse(mirrored.begin(), mirrored.end());
    EXPECT_EQ(mirrored, turn_order(seed, 3, round)) << "seed " << seed;
  }
}

TEST(Turns, begin_with_either_arm_about_as_often) {
  int first = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first += turn_order(seed, 2, 0).front() == 0;
  EXPECT_NEAR(first, 500, 80);  // five standard deviations
}

TEST(Turns, come_in_every_order_of_three_arms) {
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t round = 0; round < 200; round += 2) orders.insert(turn_order(7, 3, round));
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Turns, last_fifty_milliseconds_of_short_steps) {
  EXPECT_EQ(steps_per_turn(milliseconds{10}, 100), 5u);
  EXPECT_EQ(steps_per_turn(milliseconds{11}, 100), 5u);
}

TEST(Turns, are_single_steps_where_steps_are_long) {
  EXPECT_EQ(steps_per_turn(milliseconds{300}, 10), 1u);
}

TEST(Turns, are_cut_short_so_that_there_are_four_rounds) {
  EXPECT_EQ(steps_per_turn(milliseconds{1}, 20), 5u);
  EXPECT_EQ(steps_per_turn(milliseconds{0}, 20), 5u);
  EXPECT_EQ(steps_per_turn(milliseconds{1}, 1), 1u);
}

TEST(Turns, are_taken_on_the_host_where_all_arms_fit) {
  EXPECT_THAT(why_no_turns_of_two(cell_on("host(capacity=64MiB)")), IsEmpty());
}

TEST(Turns, are_not_taken_where_the_arms_do_not_fit_together) {
  EXPECT_THAT(why_no_turns_of_two(cell_on("host(capacity=1000000GiB)")),
              HasSubstr("half of the free memory"));
}

TEST(Turns, are_not_taken_on_a_gpu) {
  EXPECT_THAT(why_no_turns_of_two(cell_on("cuda")), HasSubstr("cuda is not shared"));
}

TEST(Turns, are_not_taken_where_a_pipeline_works_in_the_background) {
  Cell cell = cell_on("host(capacity=64MiB)");
  cell.pipeline = Spec::parse("prefetch(direct,depth=2)");
  EXPECT_THAT(why_no_turns_of_two(cell), HasSubstr("pipeline"));
}

// A shell that passes its turn with the word 7, sleeps until the next one, and then runs `script`.
Subprocess player(const std::string& script) {
  return {
      .argv = {"sh", "-c",
               R"(printf '\007\000\000\000\000\000\000\000' >&4; head -c 8 <&4 | od -An -tu8; )" +
                   script},
      .takes_turns = true};
}

TEST(TurnsOfProcesses, go_back_and_forth_with_what_each_side_says) {
  RunningSubprocess process(player("echo over"));
  EXPECT_EQ(process.wait(), 7u);
  process.give_turn(42);
  EXPECT_EQ(process.wait(), std::nullopt);
  EXPECT_THAT(process.result().output, HasSubstr("42\nover"));
}

TEST(TurnsOfProcesses, end_for_one_that_dies_while_it_waits) {
  Subprocess subprocess = player("echo unreachable");
  subprocess.argv.back() = "echo $$; " + subprocess.argv.back();
  RunningSubprocess process(subprocess);
  ASSERT_EQ(process.wait(), 7u);
  ::kill(-std::stoi(process.result().output), SIGKILL);
  process.give_turn(1);
  EXPECT_EQ(process.wait(), std::nullopt);
  EXPECT_EQ(process.result().ending, Ending::signalled);
}

TEST(TurnsOfProcesses, do_not_count_the_sleep_towards_the_timeout) {
  Subprocess subprocess = player("exit 3");
  subprocess.timeout = milliseconds{2000};
  RunningSubprocess process(subprocess);
  ASSERT_EQ(process.wait(), 7u);
  ::usleep(2'100'000);
  process.give_turn(1);
  process.wait();
  EXPECT_EQ(process.result().ending, Ending::exited);
  EXPECT_EQ(process.result().code, 3);
}

TEST(TurnsOfProcesses, end_at_the_timeout_of_one_that_hangs) {
  Subprocess subprocess = player("sleep 60");
  subprocess.timeout = milliseconds{500};
  RunningSubprocess process(subprocess);
  ASSERT_EQ(process.wait(), 7u);
  process.give_turn(1);
  EXPECT_EQ(process.wait(), std::nullopt);
  EXPECT_EQ(process.result().ending, Ending::timed_out);
}

TEST(TurnTaker, asks_again_only_when_the_steps_of_its_turn_are_used_up) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  for (const std::uint64_t steps : {2, 1}) ::send(ends[0], &steps, sizeof steps, 0);
  TurnTaker turns(ends[1]);
  std::vector<std::uint64_t> words;
  const auto hear = [&] {
    std::uint64_t word = 0;
    while (::recv(ends[0], &word, sizeof word, MSG_DONTWAIT) == sizeof word) words.push_back(word);
  };
  turns.before_step(10);
  turns.before_step(11);
  hear();
  EXPECT_THAT(words, ::testing::ElementsAre(10));
  turns.before_step(12);
  hear();
  EXPECT_THAT(words, ::testing::ElementsAre(10, 12));
  ::close(ends[0]);
  EXPECT_THAT([&] { turns.before_step(13); }, ThrowsMessage<Error>(HasSubstr("has gone")));
  ::close(ends[1]);
}

}  // namespace
}  // namespace headroom::turns_test
