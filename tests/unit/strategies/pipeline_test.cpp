// Properties of the stages of an input pipeline beyond correct records: bounded memory, shutdown at
// any time, errors that name their place, and a record of what they did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/support/numbered_records.h"

namespace headroom::testing::pipeline_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

// Long enough for a thread that is not blocked to run ahead.
void leave_it_alone() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

void wait_until(const std::function<bool()>& reached) {
  while (!reached()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Prefetch, makes_no_more_batches_ahead_than_it_was_told) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto pipeline = pipeline_over(workload, "prefetch(3)|stream");
  for (int taken = 0; taken < 5; ++taken) {
    wait_until([&] { return workload.traffic().batches == taken + 3; });
    leave_it_alone();
    EXPECT_EQ(workload.traffic().batches, taken + 3);
    next_batch(*pipeline, 4);
  }
  const auto reports = pipeline->reports();
  EXPECT_EQ(report_of(reports, "prefetch(3)").host_bytes_peak, 3 * 4 * sizeof(Number));
  EXPECT_LE(report_of(reports, "prefetch(3)").counters.at("most_ready"), 3u);
}

TEST(Prefetch, is_engaged_once_a_batch_was_there_before_it_was_asked_for) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto pipeline = pipeline_over(workload, "prefetch(1)|stream");
  next_batch(*pipeline, 4);
  EXPECT_THAT(pipeline->why_not_engaged(), Optional(HasSubstr("only one batch was requested")));
  wait_until([&] { return workload.traffic().batches == 2; });
  next_batch(*pipeline, 4);
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Prefetch, grows_by_itself_when_told_auto_and_found_empty_after_it_was_full) {
  const NumberedWorkload workload({.count = 1000, .batch = 1});
  const auto pipeline = pipeline_over(workload, "prefetch(auto)|slow(ms=5)|stream");
  const auto depth = [&] {
    return report_of(pipeline->reports(), "prefetch(auto)").counters.at("depth");
  };
  EXPECT_EQ(depth(), 1u);
  wait_until([&] { return workload.traffic().batches == 1; });
  leave_it_alone();
  for (int i = 0; i < 10; ++i) next_batch(*pipeline, 1);  // faster than one batch in 5 ms
  EXPECT_GT(depth(), 1u);
  EXPECT_LE(depth(), 16u);
}

TEST(ParallelMap, keeps_no_more_than_two_samples_a_thread) {
  const NumberedWorkload workload({.count = 100, .batch = 1});
  const auto pipeline = pipeline_over(workload, "map(threads=3)|stream");
  for (int taken = 1; taken < 10; ++taken) {
    next_batch(*pipeline, 1);
    wait_until([&] { return workload.traffic().reads >= taken + 6; });
    leave_it_alone();
    EXPECT_EQ(workload.traffic().reads, taken + 6);
  }
  EXPECT_LE(report_of(pipeline->reports(), "map(threads=3)").host_bytes_peak, 6 * sizeof(Number));
}

TEST(ParallelMap, is_engaged_when_more_than_one_thread_loaded) {
  const NumberedWorkload workload({.count = 100, .batch = 10});
  const auto pipeline = pipeline_over(workload, "map(threads=2)|slow(ms=1)|stream");
  EXPECT_THAT(pipeline->why_not_engaged(), Optional(HasSubstr("0 of 2 threads")));
  next_batch(*pipeline, 10);
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Shuffle, holds_as_many_records_as_its_buffer_has_room_for) {
  const NumberedWorkload workload({.count = 100, .batch = 5});
  const auto pipeline = pipeline_over(workload, "shuffle(20)|stream");
  for (int i = 0; i < 50; ++i) next_batch(*pipeline, 5);
  EXPECT_EQ(report_of(pipeline->reports(), "shuffle(20)").host_bytes_peak, 20 * sizeof(Number));
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Shuffle, of_one_record_is_no_shuffle) {
  const NumberedWorkload workload({.count = 20, .batch = 5});
  const auto pipeline = pipeline_over(workload, "shuffle(1)|stream");
  for (int i = 0; i < 8; ++i) next_batch(*pipeline, 5);
  EXPECT_THAT(pipeline->why_not_engaged(), Optional(HasSubstr("every record stayed in its place")));
}

TEST(Cache, reads_nothing_after_the_first_epoch) {
  const NumberedWorkload workload({.count = 20, .batch = 5});
  const auto pipeline = pipeline_over(workload, "map(threads=2)|slow(ms=1)|cache|stream");
  for (int i = 0; i < 40; ++i) next_batch(*pipeline, 5);
  EXPECT_EQ(workload.traffic().reads, 20);
  EXPECT_EQ(report_of(pipeline->reports(), "stream").counters.at("file_bytes_read"),
            20 * sizeof(Number));
  EXPECT_EQ(report_of(pipeline->reports(), "cache").host_bytes_peak, 20 * sizeof(Number));
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Cache, that_saw_one_epoch_saved_nothing) {
  const NumberedWorkload workload({.count = 20, .batch = 5});
  const auto pipeline = pipeline_over(workload, "cache|stream");
  for (int i = 0; i < 4; ++i) next_batch(*pipeline, 5);
  EXPECT_THAT(pipeline->why_not_engaged(), Optional(HasSubstr("ended within the first epoch")));
}

class EveryKindOfThread : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryKindOfThread, hands_on_what_came_before_an_error_and_then_where_it_was) {
  const NumberedWorkload workload({.count = 10, .batch = 1, .unreadable = 4});
  const auto pipeline = pipeline_over(workload, GetParam());
  const std::vector<Number> order = own_order(10, 0);
  const auto place = std::find(order.begin(), order.end(), 4) - order.begin();
  for (std::ptrdiff_t i = 0; i < place; ++i)
    EXPECT_EQ(next_batch(*pipeline, 1)[0], order[static_cast<std::size_t>(i)]);
  const auto names_the_place = ThrowsMessage<InputError>(AllOf(
      HasSubstr("pipeline stage 'stream'"), HasSubstr("sample " + std::to_string(place) + " "),
      HasSubstr("record 4"), HasSubstr("numbers.bin: cut short")));
  EXPECT_THAT([&] { next_batch(*pipeline, 1); }, names_the_place);
  EXPECT_THAT([&] { next_batch(*pipeline, 1); }, names_the_place) << "asked again";
}

TEST_P(EveryKindOfThread, tells_of_a_failed_decoding_as_of_the_map_stage) {
  const NumberedWorkload workload({.count = 10, .batch = 10, .undecodable = 7});
  const auto pipeline = pipeline_over(workload, GetParam());
  EXPECT_THAT([&] { next_batch(*pipeline, 10); },
              ThrowsMessage<Error>(AllOf(HasSubstr("pipeline stage 'map'"), HasSubstr("record 7"),
                                         HasSubstr("no picture"))));
}

// If shutdown hung, the test would time out.
TEST_P(EveryKindOfThread, ends_when_nobody_asked_in_the_midst_of_an_epoch_and_while_it_is_blocked) {
  const NumberedWorkload workload({.count = 7, .batch = 2});
  pipeline_over(workload, GetParam());
  const auto asked = pipeline_over(workload, GetParam());
  for (int i = 0; i < 5; ++i) next_batch(*asked, 2);
  leave_it_alone();  // full by now
}

TEST_P(EveryKindOfThread, ends_while_a_record_takes_long) {
  const NumberedWorkload workload({.count = 200, .batch = 100});
  const bool must_be_outermost = GetParam().starts_with("staging");
  for (const char* by : {"sleep", "compute"}) {
    const auto pipeline = pipeline_over(workload, (must_be_outermost ? "" : "prefetch(1)|") +
                                                      GetParam().substr(0, GetParam().rfind('|')) +
                                                      "|slow(by=" + by + ",ms=60000)|stream");
    wait_until([&] { return workload.traffic().reads > 0; });
  }
}

INSTANTIATE_TEST_SUITE_P(Pipeline, EveryKindOfThread,
                         ::testing::Values("prefetch(2)|stream", "map(threads=3)|stream",
                                           "interleave(3)|stream", "staging(2)|stream",
                                           "prefetch(auto)|map(threads=2)|interleave(2)|stream"));

struct Refusal {
  std::string spec, told;
};

class RefusedPipeline : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedPipeline, says_why) {
  EXPECT_THAT([] { check_pipeline(Spec::parse_composition(GetParam().spec)); },
              ThrowsMessage<InputError>(HasSubstr(GetParam().told)));
}

INSTANTIATE_TEST_SUITE_P(
    Pipeline, RefusedPipeline,
    ::testing::Values(
        Refusal{"prefect(2)", "did you mean 'prefetch'?"},
        Refusal{"map(thraeds=2)", "did you mean 'threads'?"},
        Refusal{"prefetch", "give the number of batches"},
        Refusal{"prefetch(0)", "give the number of batches"},
        Refusal{"prefetch(soon)", "must be a whole number"},
        Refusal{"staging", "give the number of batches"},
        Refusal{"prefetch(2)|staging(2)|stream", "so it must come first"},
        Refusal{"restart(3)|staging(2)|stream", "so it must come first"},
        Refusal{"shuffle|stream", "give the number of records in its buffer"},
        Refusal{"map(threads=0)|stream", "0 threads are not possible"},
        Refusal{"map(ordered=off)|stream", "without threads= the order is always kept"},
        Refusal{"slow|stream", "give the milliseconds"},
        Refusal{"slow(by=magic,ms=1)|stream", "by= must be sleep or compute"},
        Refusal{"stream|map", "'stream' is a source and must come last"},
        Refusal{"map|direct", "'map' works on records, but 'direct' delivers whole batches"},
        Refusal{"map|prefetch(2)|stream", "'prefetch' works on batches and must come before"},
        Refusal{"cache|batch|stream", "'cache' works on records and must come after"},
        Refusal{"map|map|stream", "only once"}, Refusal{"batch|batch|stream", "only once"},
        Refusal{"cache|shuffle(8)|stream", "put it behind 'shuffle'"},
        Refusal{"cache|map(threads=2)|stream", "put it behind 'map'"}));

}  // namespace
}  // namespace headroom::testing::pipeline_test
