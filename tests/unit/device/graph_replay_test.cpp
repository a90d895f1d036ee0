// When work is captured as a CUDA graph and when it is launched, tested with a fake driver that
// records its calls.
#include "harness/device/cuda/graph_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/base/error.h"

namespace headroom::graph_replay_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Calls = std::vector<std::string>;

class NotedDriver final : public GraphDriver {
 public:
  NotedDriver(Calls& calls, std::string refused) : calls_(calls), refused_(std::move(refused)) {}
  void begin() override { note("begin"); }
  void end() override { note("end"); }
  void abandon() noexcept override { calls_.emplace_back("abandon"); }
  void launch() override { note("launch"); }

 private:
  void note(const std::string& call) {
    calls_.push_back(call);
    if (call == refused_) throw DeviceError("CUDA refused to " + call);
  }

  Calls& calls_;
  std::string refused_;
};

// The driver calls of each run; the work itself is the call "queue".
struct Script {
  Calls calls;
  bool work_is_refused = false;
  GraphReplay replay;

  explicit Script(const std::string& refused = "")
      : replay(std::make_unique<NotedDriver>(calls, refused), [this] {
          calls.emplace_back("queue");
          if (work_is_refused) throw DeviceError("layer.1: CUDA refused to wait");
        }) {}
  Calls run() {
    calls.clear();
    replay.run();
    return calls;
  }
};

TEST(GraphReplay, runs_once_as_it_is_then_captures_and_only_launches_from_then_on) {
  Script script;
  EXPECT_THAT(script.run(), ElementsAre("queue"));
  EXPECT_THAT(script.run(), ElementsAre("begin", "queue", "end", "launch"));
  EXPECT_THAT(script.run(), ElementsAre("launch"));
  EXPECT_THAT(script.run(), ElementsAre("launch"));
}

TEST(GraphReplay, ends_a_capture_that_fails_and_says_what_could_not_be_captured) {
  Script script;
  script.run();
  script.work_is_refused = true;
  EXPECT_THAT([&] { script.run(); },
              ThrowsMessage<NotSupported>(
                  AllOf(HasSubstr("layer.1: CUDA refused to wait"), HasSubstr("last_use"))));
  EXPECT_THAT(script.calls, ElementsAre("begin", "queue", "abandon"));
}

TEST(GraphReplay, launches_nothing_where_the_driver_refuses_to_begin_or_to_end) {
  for (const char* refused : {"begin", "end"}) {
    Script script(refused);
    script.run();
    EXPECT_THROW(script.run(), NotSupported);
    EXPECT_EQ(script.calls.back(), "abandon") << refused;
  }
}

TEST(GraphReplay, takes_an_error_of_the_first_run_for_what_it_is) {
  Script script;
  script.work_is_refused = true;
  EXPECT_THROW(script.run(), DeviceError);
  EXPECT_THAT(script.calls, ElementsAre("queue"));
}

}  // namespace
}  // namespace headroom::graph_replay_test
