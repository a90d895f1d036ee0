#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"

namespace headroom::recording_test {
namespace {

class Recording : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = make_device(Spec::parse("meta(capacity=1MiB)"));
    strategy_ = make_allocator(Spec::parse("malloc"), device_->memory());
    device_->memory().record_into(&recorder_);
  }
  const std::vector<TraceEvent>& events() const { return recorder_.trace().events; }

  TraceRecorder recorder_{16};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> strategy_;
};

TEST_F(Recording, writes_when_and_where_a_block_was_served) {
  RecordingAllocator allocator(*strategy_, recorder_);
  recorder_.enter_step(3);
  recorder_.enter_op(7, Phase::backward, 1234);
  const Block block = allocator.allocate(1000, {.role = Role::gradient});
  ASSERT_EQ(events().size(), 2u);  // the segment first
  const TraceEvent& event = events()[1];
  EXPECT_EQ(event.kind, EventKind::alloc);
  EXPECT_EQ(event.id, 1u);
  EXPECT_EQ(event.role, Role::gradient);
  EXPECT_EQ(event.phase, Phase::backward);
  EXPECT_EQ(event.op, 7u);
  EXPECT_EQ(event.step, 3);
  EXPECT_EQ(event.requested, 1000u);
  EXPECT_EQ(event.size, 1024u);
  EXPECT_EQ(event.address, block.address);
  EXPECT_EQ(event.time_ns, 1234u);
}

TEST_F(Recording, gives_a_free_the_number_and_role_of_its_block) {
  RecordingAllocator allocator(*strategy_, recorder_);
  const Block a = allocator.allocate(1, {.role = Role::weight});
  const Block b = allocator.allocate(1, {.role = Role::workspace});
  allocator.deallocate(b);
  allocator.deallocate(a);
  std::vector<std::pair<std::uint32_t, Role>> freed;
  for (const TraceEvent& event : events()) {
    if (event.kind == EventKind::free) freed.emplace_back(event.id, event.role);
  }
  EXPECT_THAT(freed,
              ::testing::ElementsAre(std::pair{2u, Role::workspace}, std::pair{1u, Role::weight}));
}

TEST_F(Recording, records_a_refused_request_and_lets_the_error_through) {
  RecordingAllocator allocator(*strategy_, recorder_);
  EXPECT_THROW(allocator.allocate(2 * kMiB, {.role = Role::activation}), OutOfMemory);
  ASSERT_EQ(events().size(), 1u);
  EXPECT_EQ(events()[0].kind, EventKind::oom);
  EXPECT_EQ(events()[0].requested, 2 * kMiB);
}

TEST_F(Recording, leaves_requests_of_zero_bytes_out) {
  RecordingAllocator allocator(*strategy_, recorder_);
  allocator.deallocate(allocator.allocate(0, {}));
  EXPECT_TRUE(events().empty());
}

TEST(Recorder, takes_its_room_before_the_first_event) {
  TraceRecorder recorder(1000);
  EXPECT_TRUE(recorder.trace().events.empty());
  EXPECT_GE(recorder.trace().events.capacity(), 1000u);
}

}  // namespace
}  // namespace headroom::recording_test
