// A stored trace file of format 1.0, which must remain readable however the format changes. It was
// made once, by a program of that version, from the events below.
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

// tests/traces/test_golden.py knows the same events.
Trace kept_trace() {
  Trace trace;
  trace.header = {"meta(card=v100-16gb)", "dense",   "bfc(growth=on)",
                  "resnet(depth=18)",     16 * kGiB, 2 * kMiB};
  trace.op_names = {"conv1", "layer1.0.conv1", "fc"};
  for (std::uint32_t i = 0; i < 1000; ++i)
    trace.events.push_back({.kind = static_cast<EventKind>(i % kEventKindCount),
                            .role = static_cast<Role>(i % kRoleCount),
                            .phase = static_cast<Phase>(i % kPhaseCount),
                            .stream = static_cast<std::uint8_t>(i % 3),
                            .id = i * 7919 % 1000,
                            .op = i % 4 == 3 ? kNoOp : i % 4,
                            .step = static_cast<std::int32_t>(i) / 100 - 1,
                            .requested = Bytes{i} * i * i * 1000,
                            .size = align_up(Bytes{i} * i * i * 1000, 256),
                            .address = Address{i * 7919 % 1000} << 21,
                            .time_ns = std::uint64_t{i} * 1'000'003});
  return trace;
}

TEST(TraceFile, of_version_1_0_is_read_as_it_was_written) {
  const std::string kept = (std::filesystem::path(GOLDEN_DIRECTORY) / "trace_1.0.hrtrace").string();
  const Trace trace = read_trace(kept);
  const Trace expected = kept_trace();
  EXPECT_EQ(first_difference(trace, expected), "");
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    ASSERT_EQ(trace.events[i].time_ns, expected.events[i].time_ns) << i;
  EXPECT_EQ(trace.op_names, expected.op_names);
  EXPECT_EQ(trace.header.device, expected.header.device);
  EXPECT_EQ(trace.header.rules, expected.header.rules);
  EXPECT_EQ(trace.header.allocator, expected.header.allocator);
  EXPECT_EQ(trace.header.workload, expected.header.workload);
  EXPECT_EQ(trace.header.capacity_bytes, expected.header.capacity_bytes);
  EXPECT_EQ(trace.header.granule_bytes, expected.header.granule_bytes);
}

}  // namespace
}  // namespace headroom
