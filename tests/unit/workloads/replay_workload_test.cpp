// A recorded trace as a workload: the same requests again, on any device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/requests.h"
#include "harness/trace/trace_io.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::replay_workload_test {
namespace {

Cell cell(const std::string& workload, const std::string& device, const std::string& rules) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = rules,
          .allocator = Spec::parse("bfc(growth=on)"),
          .warmup_steps = 1,
          .measured_steps = 2};
}

// Returns the bytes that are allocated and freed, in order.
std::vector<std::pair<Request::Kind, Bytes>> requests_in_step(const std::string& trace, int step) {
  std::vector<std::pair<Request::Kind, Bytes>> result;
  for (const Request& request : requests_of(read_trace(trace)).requests)
    if (request.step == step) result.emplace_back(request.kind, request.bytes);
  return result;
}

class ReplayWorkload : public ::testing::Test {
 protected:
  void SetUp() override {
    const Sample sample = run_cell(
        cell("resnet(depth=18,width=8,batch=4)", "meta(capacity=1GiB)", "dense"), 5, recorded_);
    ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
    lower_bound_ = sample.lower_bound_bytes;
  }

  Sample replayed(const std::string& device, const std::string& rules) {
    return run_cell(cell("replay(file=" + recorded_ + ")", device, rules), 5, again_);
  }

  TemporaryDirectory directory_;
  std::string recorded_ = (directory_.path() / "recorded.hrtrace").string();
  std::string again_ = (directory_.path() / "again.hrtrace").string();
  Bytes lower_bound_ = 0;
};

TEST_F(ReplayWorkload, asks_for_the_same_bytes_in_the_same_order_in_every_step) {
  for (const auto& [device, rules] :
       {std::pair{"meta(capacity=1GiB)", "dense"}, std::pair{"host(capacity=1GiB)", "onednn"}}) {
    const Sample sample = replayed(device, rules);
    ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
    EXPECT_EQ(sample.lower_bound_bytes, lower_bound_);
    for (const int step : {1, 2, 3}) {
      std::vector<Bytes> asked, again;
      for (const auto& [kind, bytes] : requests_in_step(recorded_, step))
        if (kind == Request::Kind::alloc) asked.push_back(bytes);
      for (const auto& [kind, bytes] : requests_in_step(again_, step))
        if (kind == Request::Kind::alloc) again.push_back(bytes);
      EXPECT_EQ(again, asked) << device << " step " << step;
    }
  }
}

TEST_F(ReplayWorkload, finds_no_room_where_the_recorded_run_would_find_none) {
  const Sample sample = replayed("meta(capacity=2MiB)", "dense");
  EXPECT_EQ(sample.status, SampleStatus::oom);
}

TEST_F(ReplayWorkload, refuses_strategies_that_would_change_what_was_recorded) {
  Cell changed = cell("replay(file=" + recorded_ + ")", "meta(capacity=1GiB)", "dense");
  set_axis(changed, "pruning", "magnitude");
  const Sample sample = run_cell(changed, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::unsupported);
  EXPECT_THAT(sample.reason, ::testing::HasSubstr("pruning=magnitude"));
}

TEST(Replay, without_a_trace_says_what_it_wants) {
  for (const char* bad : {"replay", "replay(file=/nowhere/run.hrtrace)"})
    EXPECT_THROW(make_workload(Spec::parse(bad)), InputError) << bad;
}

}  // namespace
}  // namespace headroom::replay_workload_test
