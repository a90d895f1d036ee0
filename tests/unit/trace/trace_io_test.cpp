#include "harness/trace/trace_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "harness/base/error.h"
#include "harness/trace/file/columns.h"
#include "harness/trace/file/reader.h"
#include "harness/trace/file/writer.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/support/trace_builder.h"
#include "tests/unit/trace/made_up_trace.h"

namespace headroom::trace_io_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using trace_file::BlockKind;
using trace_file::BlockWriter;

class TraceFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return place_.path() / name; }

  // Writes the given blocks to a file, whatever they hold.
  using Blocks = std::vector<std::pair<BlockKind, std::string>>;
  std::string file_of(const Blocks& blocks) const {
    std::ofstream file(path("made"), std::ios::binary);
    BlockWriter writer(file);
    for (const auto& [kind, content] : blocks) writer.write(kind, content);
    return path("made");
  }
  static std::string header() { return trace_file::header_text({}); }
  static std::string chunk_of(const Trace& trace) {
    std::string content;
    trace_file::encode_chunk(trace.events, content);
    return content;
  }
  static std::string end(std::uint64_t events) { return trace_file::end_text({events, 0}); }

  TemporaryDirectory place_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(TraceFiles, come_back_as_they_were_written) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const Trace written = random_trace(seed);
  write_trace(written, path("a"));
  const Trace read = read_trace(path("a"));
  EXPECT_EQ(first_difference(written, read), "");
  EXPECT_TRUE(same_times(written, read));
  EXPECT_EQ(read.op_names, written.op_names);
  EXPECT_EQ(read.header.device, written.header.device);
  EXPECT_EQ(read.header.rules, written.header.rules);
  EXPECT_EQ(read.header.allocator, written.header.allocator);
  EXPECT_EQ(read.header.workload, written.header.workload);
  EXPECT_EQ(read.header.capacity_bytes, written.header.capacity_bytes);
  EXPECT_EQ(read.header.granule_bytes, written.header.granule_bytes);
}

TEST_F(TraceFiles, may_have_more_events_than_a_chunk) {
  const Trace written = random_trace(1, 150'000);
  write_trace(written, path("a"));
  const Trace read = read_trace(path("a"));
  EXPECT_EQ(first_difference(written, read), "");
  EXPECT_TRUE(same_times(written, read));
}

TEST_F(TraceFiles, may_have_no_events) {
  write_trace({}, path("empty"));
  EXPECT_TRUE(read_trace(path("empty")).events.empty());
}

TEST_F(TraceFiles, keep_the_largest_and_smallest_numbers) {
  constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
  Trace written;
  written.op_names = {"a"};
  for (const bool large : {false, true, false, true})
    written.events.push_back({.stream = static_cast<std::uint8_t>(large ? 255 : 0),
                              .id = large ? ~std::uint32_t{0} : 0,
                              .op = large ? kNoOp - 1 : kNoOp,
                              .step = large ? std::numeric_limits<std::int32_t>::max()
                                            : std::numeric_limits<std::int32_t>::min(),
                              .requested = large ? kLargest : 0,
                              .size = large ? 0 : kLargest,
                              .address = large ? kLargest : 0,
                              .time_ns = large ? kLargest : 1});
  write_trace(written, path("a"));
  const Trace read = read_trace(path("a"));
  EXPECT_EQ(first_difference(written, read), "");
  EXPECT_TRUE(same_times(written, read));
}

TEST_F(TraceFiles, keep_bytes_of_names_that_are_no_unicode_readable) {
  Trace written;
  written.header.workload = "data=\xff.bin";
  write_trace(written, path("a"));
  EXPECT_THAT(read_trace(path("a")).header.workload, AllOf(HasSubstr("data="), HasSubstr(".bin")));
}

TEST_F(TraceFiles, can_be_written_and_read_a_part_at_a_time) {
  const Trace whole = random_trace(3, 70'000);
  std::stringstream stream;
  TraceWriter writer(stream, whole.header);
  for (const std::string& name : whole.op_names) writer.add_op_names(std::span(&name, 1));
  for (const TraceEvent& event : whole.events) writer.add(std::span(&event, 1));
  writer.finish();

  TraceReader reader(stream, "stream");
  Trace read;
  std::vector<TraceEvent> chunk;
  for (; reader.read_chunk(chunk); chunk.clear())
    read.events.insert(read.events.end(), chunk.begin(), chunk.end());
  EXPECT_EQ(first_difference(whole, read), "");
  EXPECT_EQ(reader.op_names(), whole.op_names);
  EXPECT_FALSE(reader.read_chunk(chunk));
}

TEST_F(TraceFiles, leave_nothing_unfinished_behind) {
  write_trace(random_trace(1), path("a"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place_.path()), {}), 1);
}

TEST_F(TraceFiles, are_known_by_their_first_bytes) {
  write_trace({}, path("a"));
  EXPECT_TRUE(is_trace(path("a")));
  EXPECT_FALSE(is_trace(place_.write("b", "1 0x1 100 0\n")));
  EXPECT_FALSE(is_trace(path("none")));
}

TEST_F(TraceFiles, are_refused_by_name_when_missing) {
  EXPECT_THAT([&] { read_trace(path("none")); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("none"), HasSubstr("No such file"))));
}

TEST_F(TraceFiles, are_refused_when_they_are_something_else) {
  for (const char* text : {"", "hello", "\x89HRTRAC", "{\"schema_version\":1}"})
    EXPECT_THAT([&] { read_trace(place_.write("made", text)); },
                ThrowsMessage<InputError>(HasSubstr("is not a Headroom trace")))
        << text;
}

TEST_F(TraceFiles, are_refused_with_the_place_when_cut_off) {
  write_trace(random_trace(1, 70'000), path("a"));
  std::filesystem::resize_file(path("a"), std::filesystem::file_size(path("a")) - 1);
  EXPECT_THAT([&] { read_trace(path("a")); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr(path("a")), HasSubstr("is cut off (block 5, after 70000"))));
}

TEST_F(TraceFiles, are_refused_when_their_end_is_missing) {
  EXPECT_THAT(
      [&] {
        read_trace(file_of({{BlockKind::header, header()}}));
      },
      ThrowsMessage<InputError>(HasSubstr("is cut off (block 2")));
}

TEST_F(TraceFiles, are_refused_when_of_another_major_version) {
  const std::string newer = replaced(header(), "\"1.0\"", "\"2.0\"");
  EXPECT_THAT(
      [&] {
        read_trace(file_of({{BlockKind::header, newer}}));
      },
      ThrowsMessage<InputError>(HasSubstr("is of version 2.0")));
}

TEST_F(TraceFiles, ignore_keys_and_columns_of_a_later_minor_version) {
  const Trace trace = random_trace(7);
  std::string newer = replaced(header(), "\"1.0\"", "\"1.9\"");
  newer = replaced(newer, "\"time_ns\"", "\"time_ns\",\"thread\"");
  newer.insert(1, R"("something_new":{"a":[1]},)");
  std::string chunk = chunk_of(trace);
  trace_file::append_column(std::vector<std::uint64_t>(trace.events.size(), 5), chunk);
  const Trace read = read_trace(
      file_of({{BlockKind::header, newer}, {BlockKind::chunk, chunk}, {BlockKind::end, end(500)}}));
  EXPECT_EQ(first_difference(read, trace), "");
}

TEST_F(TraceFiles, are_refused_when_their_parts_do_not_fit_each_other) {
  const Trace trace = random_trace(7);
  const std::string chunk = chunk_of(trace);
  const auto expect = [&](const Blocks& blocks, const char* complaint) {
    EXPECT_THAT([&] { read_trace(file_of(blocks)); },
                ThrowsMessage<InputError>(HasSubstr(complaint)));
  };
  const std::pair<BlockKind, std::string> head{BlockKind::header, header()};
  const auto with = [&](const std::string& from, const std::string& to) {
    return std::pair{BlockKind::header, replaced(header(), from, to)};
  };
  const std::pair<BlockKind, std::string> body{BlockKind::chunk, chunk};
  expect({}, "is cut off");
  expect({body}, "does not begin with a header");
  expect({head, head}, "a second header");
  expect({with("\"gradient\"", "\"gradiant\"")}, "'gradiant'");
  expect({with("\"device\"", "\"devise\"")}, "is damaged");
  expect({with("\"capacity_bytes\":0", "\"capacity_bytes\":-1")}, "'capacity_bytes'");
  expect({with("\"time_ns\"", "\"times\""), body}, "column 'time_ns' is missing");
  expect({with("\"time_ns\"", "\"time_ns\",\"more\""), body}, "column 'more' ends early");
  expect({with("\"kind\",", ""), body}, "");
  expect({head, {BlockKind::chunk, chunk + "x"}}, "left after the last column");
  expect({head, {BlockKind::chunk, ""}}, "no count of events");
  expect({head, {BlockKind::names, "{}"}}, "is damaged");
  expect({head, body, {BlockKind::end, end(499)}}, "499 events");
  expect({head, body, {BlockKind::end, end(500)}, {BlockKind::end, end(500)}}, "goes on");
}

TEST_F(TraceFiles, are_refused_for_counts_that_nothing_backs) {
  for (const std::uint32_t count : {0u, 65537u, ~0u, 400u}) {
    std::string chunk = chunk_of(random_trace(7, 300));
    std::memcpy(chunk.data(), &count, sizeof count);
    EXPECT_THAT(
        [&] {
          read_trace(file_of({{BlockKind::header, header()}, {BlockKind::chunk, chunk}}));
        },
        ThrowsMessage<InputError>(HasSubstr("block 2")))
        << count;
  }
}

TEST_F(TraceFiles, cannot_make_much_of_little) {
  Trace equal;
  equal.events.resize(trace_file::kMaximumChunkEvents);
  Blocks blocks(80, {BlockKind::chunk, chunk_of(equal)});
  blocks.insert(blocks.begin(), {BlockKind::header, header()});
  EXPECT_THAT([&] { read_trace(file_of(blocks)); },
              ThrowsMessage<InputError>(HasSubstr("claims over")));
}

TEST_F(TraceFiles, say_where_they_could_not_be_written) {
  EXPECT_THAT([&] { write_trace({}, path("no/such/folder/a")); },
              ThrowsMessage<InputError>(HasSubstr("no/such/folder/a")));
}

TEST_F(TraceFiles, say_that_the_disk_is_full) {
  // /dev/full refuses every write with ENOSPC; the unfinished file is a link to it.
  std::filesystem::create_symlink("/dev/full", path("a.unfinished"));
  EXPECT_THAT([&] { write_trace(random_trace(1), path("a")); },
              ThrowsMessage<InputError>(AllOf(HasSubstr(path("a")), HasSubstr("No space left"))));
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST(FirstDifference, names_the_event_where_two_traces_part) {
  TraceBuilder a;
  a.segment(1, 0x1000, 0x1000).alloc(1, 0x1000, 256);
  TraceBuilder b;
  b.segment(1, 0x1000, 0x1000).alloc(1, 0x1000, 512);
  EXPECT_THAT(first_difference(a.trace(), b.trace()), HasSubstr("event 1: alloc 1"));
  EXPECT_EQ(first_difference(a.trace(), a.trace()), "");
}

TEST(FirstDifference, sees_that_one_trace_ends_early) {
  TraceBuilder a;
  a.segment(1, 0x1000, 0x1000);
  TraceBuilder b;
  EXPECT_THAT(first_difference(a.trace(), b.trace()), HasSubstr("but nothing more"));
}

TEST(FirstDifference, leaves_times_out) {
  TraceBuilder a;
  a.segment(1, 0x1000, 0x1000);
  TraceBuilder b;
  b.segment(1, 0x1000, 0x1000);
  b.trace().events[0].time_ns = 5;
  EXPECT_EQ(first_difference(a.trace(), b.trace()), "");
}

}  // namespace
}  // namespace headroom::trace_io_test
