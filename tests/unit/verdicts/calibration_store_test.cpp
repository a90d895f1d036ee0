#include "harness/verdicts/calibration_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::calibration_store_test {
namespace {

class Calibrations : public ::testing::Test {
 protected:
  CalibrationStore store(const char* machine = "here") const {
    return {place_.path() / "state" / "calibration.jsonl", machine};
  }
  TemporaryDirectory place_;
};

TEST_F(Calibrations, add_up_over_the_runs_of_one_machine) {
  store().add("run 1", {.aa_comparisons = 2, .false_alarms = 1});
  store().add("run 2", {.aa_comparisons = 3, .false_alarms = 0});
  store("elsewhere").add("run 3", {.aa_comparisons = 7, .false_alarms = 7});
  const Calibration sum = store().earlier_than("run 4");
  EXPECT_EQ(sum.aa_comparisons, 5);
  EXPECT_EQ(sum.false_alarms, 1);
}

TEST_F(Calibrations, count_a_run_once_however_often_it_is_verified) {
  store().add("run 1", {.aa_comparisons = 2, .false_alarms = 1});
  store().add("run 1", {.aa_comparisons = 2, .false_alarms = 0});
  EXPECT_EQ(store().earlier_than("run 1").aa_comparisons, 0);
  EXPECT_EQ(store().earlier_than("run 2").aa_comparisons, 2);
  EXPECT_EQ(store().earlier_than("run 2").false_alarms, 0);
}

TEST_F(Calibrations, leave_out_comparisons_by_another_figure) {
  store().add("run 1", {.aa_comparisons = 2, .false_alarms = 0});
  std::ofstream(place_.path() / "state" / "calibration.jsonl", std::ios::app)
      << R"({"run_id":"old","machine":"here","aa_comparisons":9,"false_alarms":9})"
      << "\n";
  EXPECT_EQ(store().earlier_than("run 2").aa_comparisons, 2);
}

TEST_F(Calibrations, survive_a_torn_line) {
  store().add("run 1", {.aa_comparisons = 2, .false_alarms = 0});
  std::ofstream(place_.path() / "state" / "calibration.jsonl", std::ios::app)
      << "{\"run_id\": \"ru";
  EXPECT_EQ(store().earlier_than("run 2").aa_comparisons, 2);
}

TEST_F(Calibrations, say_when_they_cannot_be_kept) {
  place_.write("state", "a file where a directory should be");
  EXPECT_THAT([&] { store().add("run 1", {.aa_comparisons = 1, .false_alarms = 0}); },
              ::testing::ThrowsMessage<InputError>(::testing::HasSubstr("XDG_STATE_HOME")));
}

}  // namespace
}  // namespace headroom::calibration_store_test
