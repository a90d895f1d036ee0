#include "harness/base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/base/error.h"
#include "harness/base/sha256.h"

namespace headroom::subprocess_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SubprocessResult shell(const std::string& script, std::chrono::milliseconds timeout = {}) {
  return run_subprocess({.argv = {"sh", "-c", script}, .timeout = timeout});
}

TEST(Subprocess, keeps_output_errors_and_results_apart) {
  const SubprocessResult result = shell("echo out; echo err >&2; echo result >&3; exit 3");
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.results, "result\n");
}

TEST(Subprocess, takes_results_larger_than_a_pipe_holds) {
  const SubprocessResult result = shell("head -c 3000000 /dev/zero >&3");
  EXPECT_EQ(result.results.size(), 3'000'000u);
}

TEST(Subprocess, keeps_the_end_of_a_long_complaint) {
  const SubprocessResult result = shell("head -c 1000000 /dev/zero >&2; echo last words >&2");
  EXPECT_LT(result.errors.size(), 100'000u);
  EXPECT_TRUE(result.errors.ends_with("last words\n"));
}

TEST(Subprocess, tells_the_signal_that_ended_it) {
  const SubprocessResult result = shell("kill -SEGV $$");
  EXPECT_EQ(result.ending, Ending::signalled);
  EXPECT_EQ(signal_name(result.code), "SIGSEGV");
}

TEST(Subprocess, kills_the_whole_group_when_time_is_up) {
  // The grandchild would hold the pipe open for a minute.
  const SubprocessResult result = shell("sleep 60 & echo $!; wait", std::chrono::milliseconds{300});
  EXPECT_EQ(result.ending, Ending::timed_out);
  const pid_t grandchild = std::stoi(result.output);
  EXPECT_EQ(::kill(-grandchild, 0), -1);
}

TEST(Subprocess, does_not_wait_for_a_grandchild_that_stays_behind) {
  const SubprocessResult result = shell("sleep 60 & echo $!");
  EXPECT_EQ(result.ending, Ending::exited);
}

TEST(Subprocess, gives_the_variables_it_was_told_to) {
  const SubprocessResult result =
      run_subprocess({.argv = {"sh", "-c", "printf %s \"$HEADROOM_TEST_VARIABLE\""},
                      .environment = {"HEADROOM_TEST_VARIABLE=a b"}});
  EXPECT_EQ(result.output, "a b");
}

TEST(Subprocess, says_which_program_does_not_start) {
  EXPECT_THAT([] { run_subprocess({.argv = {"/no/such/program"}}); },
              ThrowsMessage<DeviceError>(HasSubstr("/no/such/program")));
}

TEST(Sha256, agrees_with_the_standard) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace headroom::subprocess_test
