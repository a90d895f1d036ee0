// Ledgers compared with results worked out by hand.
#include "harness/trace/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/trace/quiet_steps.h"
#include "tests/unit/support/trace_builder.h"

namespace headroom::ledger_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Address kBase = 0x100000;

// A weight before the first step, then three steps that each take an activation: 2048 bytes in
// the first, 1024 in the others.
Trace three_steps() {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192).alloc(1, kBase, 1000, 1024, Role::weight);
  builder.step(1).alloc(2, kBase + 1024, 2000, 2048).free(2);
  builder.step(2).alloc(3, kBase + 1024, 1024).free(3);
  builder.step(3).alloc(4, kBase + 1024, 1024).free(4);
  return builder.trace();
}

TEST(Ledger, reads_each_rung_at_each_moment) {
  const Ledger ledger = make_ledger(three_steps(), 1);
  EXPECT_EQ(ledger.requested.initial, 1000u);
  EXPECT_EQ(ledger.requested.after_step_1, 1000u);
  EXPECT_EQ(ledger.requested.warmup_peak, 3000u);
  EXPECT_EQ(ledger.requested.steady_peak, 2024u);
  EXPECT_EQ(ledger.requested.overall_peak, 3000u);
  EXPECT_EQ(ledger.allocated.initial, 1024u);
  EXPECT_EQ(ledger.allocated.warmup_peak, 3072u);
  EXPECT_EQ(ledger.allocated.steady_peak, 2048u);
  EXPECT_EQ(ledger.reserved.initial, 8192u);
  EXPECT_EQ(ledger.reserved.steady_peak, 8192u);
  EXPECT_DOUBLE_EQ(ledger.utilisation, 3072.0 / 8192.0);
}

TEST(Ledger, moves_the_border_of_warm_up) {
  EXPECT_EQ(make_ledger(three_steps(), 0).requested.steady_peak, 3000u);
  EXPECT_EQ(make_ledger(three_steps(), 0).requested.warmup_peak, 0u);
  EXPECT_EQ(make_ledger(three_steps(), 3).requested.steady_peak, 0u);
}

TEST(Ledger, counts_what_a_step_finds_towards_its_peak) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192);
  builder.step(1).alloc(1, kBase, 4096);
  builder.step(2).free(1);
  EXPECT_EQ(make_ledger(builder.trace(), 1).allocated.steady_peak, 4096u);
  EXPECT_EQ(make_ledger(builder.trace(), 1).allocated.after_step_1, 4096u);
}

TEST(Ledger, leaves_moments_at_zero_that_never_came) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192).alloc(1, kBase, 256);
  const Ledger ledger = make_ledger(builder.trace(), 1);
  EXPECT_EQ(ledger.requested.overall_peak, 256u);
  EXPECT_EQ(ledger.requested.initial, 0u);
  EXPECT_EQ(ledger.requested.after_step_1, 0u);
}

TEST(Ledger, splits_the_peak_by_role) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192).alloc(1, kBase, 1000, 1024, Role::weight);
  builder.step(1).alloc(2, kBase + 1024, 512, 512, Role::gradient).free(2);
  builder.alloc(3, kBase + 1024, 2000, 2048, Role::activation);
  const Ledger ledger = make_ledger(builder.trace(), 0);
  EXPECT_EQ(ledger.requested_at_peak[static_cast<int>(Role::weight)], 1000u);
  EXPECT_EQ(ledger.requested_at_peak[static_cast<int>(Role::activation)], 2000u);
  EXPECT_EQ(ledger.requested_at_peak[static_cast<int>(Role::gradient)], 0u);
}

TEST(Ledger, keeps_the_peaks_of_each_phase_after_warm_up) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192);
  builder.step(1, Phase::forward).alloc(1, kBase, 4096).free(1);
  builder.step(2, Phase::forward).alloc(2, kBase, 1024);
  builder.step(2, Phase::backward).alloc(3, kBase + 1024, 512).free(2).free(3);
  const Ledger ledger = make_ledger(builder.trace(), 1);
  EXPECT_EQ(ledger.phase_peaks[static_cast<int>(Phase::forward)].allocated, 1024u);
  EXPECT_EQ(ledger.phase_peaks[static_cast<int>(Phase::backward)].allocated, 1536u);
  EXPECT_EQ(ledger.phase_peaks[static_cast<int>(Phase::update)].allocated, 0u);
}

TEST(Ledger, measures_fragmentation_where_allocated_is_highest) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192);
  builder.step(1).alloc(1, kBase, 900, 1024).alloc(2, kBase + 1024, 1024);
  builder.alloc(3, kBase + 2048, 2048).free(2);  // peak passed: 4096, one hole of 4096
  builder.alloc(4, kBase + 4096, 3072);          // new peak 6144: holes of 1024 and 1024
  builder.free(1).free(3).free(4);
  const Ledger ledger = make_ledger(builder.trace(), 0);
  EXPECT_DOUBLE_EQ(ledger.internal_fragmentation, 124.0 / 6144.0);
  EXPECT_DOUBLE_EQ(ledger.external_fragmentation, 0.5);
}

TEST(Ledger, calls_memory_without_holes_unfragmented) {
  TraceBuilder builder;
  builder.segment(1, kBase, 1000, 4096).alloc(1, kBase, 1000);
  const Ledger ledger = make_ledger(builder.trace(), 0);
  EXPECT_DOUBLE_EQ(ledger.external_fragmentation, 0.0);
  EXPECT_EQ(ledger.reserved.overall_peak, 4096u);
}

TEST(Ledger, counts_device_allocations_and_frees_per_step) {
  TraceBuilder builder;
  builder.segment(1, kBase, 4096);
  builder.step(1).segment(2, kBase + 0x10000, 4096).segment(3, kBase + 0x20000, 4096);
  builder.step(3).free_segment(2);
  const Ledger ledger = make_ledger(builder.trace(), 1);
  EXPECT_THAT(ledger.device_allocations, ElementsAre(2u, 0u, 0u));
  EXPECT_THAT(ledger.device_frees, ElementsAre(0u, 0u, 1u));
}

TEST(Ledger, keeps_what_each_step_leaves_behind) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192).alloc(1, kBase, 1024);
  builder.step(1).alloc(2, kBase + 1024, 2048).free(2);
  builder.step(2).alloc(3, kBase + 1024, 512);
  builder.step(3).alloc(4, kBase + 2048, 512);
  EXPECT_THAT(make_ledger(builder.trace(), 1).allocated_after_step, ElementsAre(1024, 1536, 2048));
}

TEST(Ledger, does_not_join_free_bytes_across_segments) {
  for (const auto& [first, second] : {std::pair{1u, 2u}, std::pair{2u, 1u}}) {
    TraceBuilder builder;
    builder.segment(1, kBase, 4096).segment(2, kBase + 4096, 4096);
    builder.alloc(1, kBase, 4096).alloc(2, kBase + 4096, 4096).free(first).free(second);
    EXPECT_EQ(make_ledger(builder.trace(), 0).allocated.overall_peak, 8192u);
    builder.alloc(3, kBase + 3840, 512);  // the last 256 bytes of one, the first 256 of the other
    EXPECT_THROW(make_ledger(builder.trace(), 0), Error) << first;
  }
}

TEST(Ledger, joins_mapped_pages_of_one_reservation_and_of_no_other) {
  TraceBuilder builder;
  builder.step(1).map(1, kBase + 4096, 4096).map(1, kBase, 4096).map(2, kBase + 8192, 4096);
  builder.alloc(1, kBase + 3840, 512).free(1).step(2).unmap(1, kBase, 4096);
  const Ledger ledger = make_ledger(builder.trace(), 1);
  EXPECT_EQ(ledger.reserved.overall_peak, 12'288u);
  EXPECT_THAT(ledger.device_allocations, ElementsAre(3u, 0u));
  EXPECT_THAT(ledger.device_frees, ElementsAre(0u, 1u));
  builder.alloc(2, kBase + 7936, 512);  // across the two reservations
  EXPECT_THROW(make_ledger(builder.trace(), 1), Error);
}

TEST(Ledger, refuses_to_take_pages_away_that_are_in_use_or_not_mapped) {
  TraceBuilder in_use;
  in_use.map(1, kBase, 8192).alloc(1, kBase + 4096, 256).unmap(1, kBase + 4096, 4096);
  EXPECT_THROW(make_ledger(in_use.trace(), 0), Error);
  TraceBuilder not_mapped;
  not_mapped.map(1, kBase, 4096).unmap(1, kBase, 8192);
  EXPECT_THROW(make_ledger(not_mapped.trace(), 0), Error);
}

TEST(Ledger, refuses_traces_that_break_its_invariants) {
  const auto ledger_of = [](TraceBuilder& builder) { return make_ledger(builder.trace(), 0); };
  TraceBuilder overlap;
  overlap.segment(1, kBase, 4096).alloc(1, kBase, 512).alloc(2, kBase + 256, 512);
  EXPECT_THAT([&] { ledger_of(overlap); },
              ThrowsMessage<Error>(HasSubstr("event 2 (alloc: block 2")));
  TraceBuilder outside;
  outside.segment(1, kBase, 4096).alloc(1, kBase + 4096, 256);
  EXPECT_THAT([&] { ledger_of(outside); }, ThrowsMessage<Error>(HasSubstr("free bytes")));
  TraceBuilder twice;
  twice.segment(1, kBase, 4096).alloc(1, kBase, 512).free(1).free(1);
  EXPECT_THAT([&] { ledger_of(twice); }, ThrowsMessage<Error>(HasSubstr("not in use")));
  TraceBuilder in_use;
  in_use.segment(1, kBase, 4096).alloc(1, kBase, 512).free_segment(1);
  EXPECT_THAT([&] { ledger_of(in_use); }, ThrowsMessage<Error>(HasSubstr("while it is in use")));
  TraceBuilder backwards;
  backwards.step(2).segment(1, kBase, 4096).step(1).alloc(1, kBase, 512);
  EXPECT_THAT([&] { ledger_of(backwards); }, ThrowsMessage<Error>(HasSubstr("earlier step")));
}

// A weight before the first step, and a block in the second of four steps.
TEST(LedgerOfQuietSteps, holds_in_a_step_without_an_event_what_the_one_before_it_left) {
  TraceBuilder builder;
  builder.segment(1, kBase, 8192).alloc(1, kBase, 1000, 1024, Role::weight);
  builder.step(2).alloc(2, kBase + 1024, 2000, 2048);
  const Ledger ledger = make_ledger_of(builder.trace(), 3, 4);
  EXPECT_EQ(ledger.requested.initial, 1000U);
  EXPECT_EQ(ledger.requested.after_step_1, 1000U);
  EXPECT_EQ(ledger.requested.warmup_peak, 3000U);
  EXPECT_EQ(ledger.requested.steady_peak, 3000U);
  EXPECT_THAT(ledger.allocated_after_step, ElementsAre(1024, 3072, 3072, 3072));
  EXPECT_THAT(ledger.device_allocations, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace headroom::ledger_test
