#include "harness/memory/trace_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "harness/base/error.h"
#include "tests/unit/trace_builder.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class TraceFiles : public ::testing::Test {
 protected:
  TraceFiles() {
    folder_ =
        std::filesystem::temp_directory_path() / ("headroom-trace-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string file_of(const std::string& text) const {
    const gzFile file = gzopen(path("made").c_str(), "wb");
    gzfwrite(text.data(), 1, text.size(), file);
    gzclose(file);
    return path("made");
  }
  // What the file holds, decompressed.
  static std::string text_of(const std::string& path) {
    const gzFile file = gzopen(path.c_str(), "rb");
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(gzread(file, text.data(), 1 << 20)));
    gzclose(file);
    return text;
  }

  std::filesystem::path folder_;
};

Trace random_trace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace trace;
  trace.header = {"meta(card=v100-16gb)", "dense", "bfc(growth=on)", "resnet(depth=18)", 16 * kGiB};
  trace.op_names = {"conv1", "\"quoted\"", "ünïcode"};
  for (int i = 0; i < 500; ++i) {
    trace.events.push_back(
        {static_cast<EventKind>(random() % 5), static_cast<Role>(random() % kRoleCount),
         static_cast<Phase>(random() % kPhaseCount), static_cast<std::uint8_t>(random()),
         static_cast<std::uint32_t>(random()),
         random() % 4 == 0 ? kNoOp : static_cast<std::uint32_t>(random() % 3),
         static_cast<std::int32_t>(random() % 100), random(), random(), random(), random()});
  }
  return trace;
}

TEST_F(TraceFiles, come_back_as_they_were_written) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const Trace written = random_trace(seed);
  write_trace(written, path("a.trace.json.gz"));
  const Trace read = read_trace(path("a.trace.json.gz"));
  EXPECT_EQ(first_difference(written, read), "");
  for (std::size_t i = 0; i < written.events.size(); ++i)
    ASSERT_EQ(read.events[i].time_ns, written.events[i].time_ns);
  EXPECT_EQ(read.op_names, written.op_names);
  EXPECT_EQ(read.header.device, written.header.device);
  EXPECT_EQ(read.header.rules, written.header.rules);
  EXPECT_EQ(read.header.allocator, written.header.allocator);
  EXPECT_EQ(read.header.workload, written.header.workload);
  EXPECT_EQ(read.header.capacity_bytes, written.header.capacity_bytes);
}

TEST_F(TraceFiles, may_have_no_events) {
  write_trace({}, path("empty"));
  EXPECT_TRUE(read_trace(path("empty")).events.empty());
}

TEST_F(TraceFiles, leave_nothing_unfinished_behind) {
  write_trace(random_trace(1), path("a"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TraceFiles, are_refused_when_cut_off) {
  write_trace(random_trace(1), path("a"));
  std::filesystem::resize_file(path("a"), std::filesystem::file_size(path("a")) / 2);
  EXPECT_THAT([&] { read_trace(path("a")); },
              ThrowsMessage<InputError>(AllOf(HasSubstr(path("a")), HasSubstr("cut off"))));
}

TEST_F(TraceFiles, are_refused_by_name_when_missing) {
  EXPECT_THAT([&] { read_trace(path("none")); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("none"), HasSubstr("No such file"))));
}

TEST_F(TraceFiles, are_refused_when_they_are_something_else) {
  for (const char* text : {"", "hello", "[1,2,3]", "{}", R"({"schema_version":1})"}) {
    EXPECT_THAT([&] { read_trace(file_of(text)); },
                ThrowsMessage<InputError>(HasSubstr("not a Headroom trace")))
        << text;
  }
}

TEST_F(TraceFiles, are_refused_when_a_part_was_tampered_with) {
  write_trace(random_trace(7), path("a"));
  const std::string good = text_of(path("a"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return file_of(text);
  };
  EXPECT_THAT([&] { read_trace(with("1.1.0", "2.0.0")); },
              ThrowsMessage<InputError>(HasSubstr("schema version 2.0.0")));
  EXPECT_THAT([&] { read_trace(with("\"gradient\"", "\"gradiant\"")); },
              ThrowsMessage<InputError>(HasSubstr("'gradiant'")));
  EXPECT_THAT([&] { read_trace(with("\"id\":[", "\"id\":[1,")); },
              ThrowsMessage<InputError>(HasSubstr("column 'id' has 501 entries of 500")));
  EXPECT_THAT([&] { read_trace(with("\"stream\":[", "\"stream\":[256],\"x\":[")); },
              ThrowsMessage<InputError>(HasSubstr("column 'stream' has 1 entries")));
  EXPECT_THAT([&] { read_trace(with("\"kind\":[", "\"kind\":[99,")); },
              ThrowsMessage<InputError>(HasSubstr("column")));
  EXPECT_THAT([&] { read_trace(with("\"step\":[", "\"step\":[0.5,")); },
              ThrowsMessage<InputError>(HasSubstr("column 'step'")));
}

TEST_F(TraceFiles, ignore_fields_of_a_later_minor_version) {
  write_trace(random_trace(7), path("a"));
  std::string text = text_of(path("a"));
  text.replace(text.find("1.1.0"), 5, "1.9.0");
  text.insert(1, R"("something_new":{"a":[1]},)");
  EXPECT_EQ(first_difference(read_trace(file_of(text)), random_trace(7)), "");
}

TEST_F(TraceFiles, say_where_they_could_not_be_written) {
  EXPECT_THAT([&] { write_trace({}, path("no/such/folder/a")); },
              ThrowsMessage<InputError>(HasSubstr("no/such/folder/a")));
}

TEST_F(TraceFiles, say_that_the_disk_is_full) {
  // /dev/full refuses every write with ENOSPC; the unfinished file is a link to it.
  std::filesystem::create_symlink("/dev/full", path("a.unfinished"));
  EXPECT_THAT([&] { write_trace(random_trace(1), path("a")); },
              ThrowsMessage<DeviceError>(HasSubstr("No space left")));
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
}  // namespace headroom
