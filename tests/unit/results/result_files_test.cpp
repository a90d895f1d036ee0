#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/results/run_directory.h"
#include "harness/results/sample_request.h"
#include "harness/results/schema_check.h"
#include "harness/runner/provenance.h"
#include "tests/unit/support/random_sample.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::result_files_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class ResultFiles : public ::testing::Test {
 protected:
  ResultFiles() { RecordProperty("seed", std::to_string(seed_)); }

  RunInfo run_info() {
    RunInfo info;
    info.run_id = "20240506T070809Z-suite";
    info.suite = "suite";
    info.claims = {"S02"};
    info.argv = {"run", "suite"};
    info.seed = seed_;
    info.started = "2024-05-06T07:08:09Z";
    info.data = {{.path = "suite.toml", .sha256 = "ab", .bytes = 3, .origin = "suite"}};
    info.planned_samples = 4;
    const Cell cell = samples_().cell;
    info.experiments = {{.id = "suite/x",
                         .origin = "suite",
                         .point = "",
                         .arms = {{"a", cell}, {"b", cell}},
                         .blocks = 2,
                         .timeout_s = 9,
                         .kind = ExperimentKind::control}};
    add_provenance(info);
    return info;
  }

  const std::uint64_t seed_ = std::random_device{}();
  RandomSample samples_{seed_};
  TemporaryDirectory place_;
};

TEST_F(ResultFiles, give_back_the_sample_they_were_given) {
  Sample sample = samples_();
  sample.oom = samples_.out_of_memory();
  sample.status = SampleStatus::oom;
  sample.reason = "capacity";
  const std::string json = to_json(sample);
  check_record(json, RecordKind::sample, "here");
  const Sample read = sample_from_json(json);
  EXPECT_EQ(to_json(read), json) << "seed " << seed_;
  EXPECT_EQ(read.step_time_ns, sample.step_time_ns);
  EXPECT_EQ(read.ledger.reserved.steady_peak, sample.ledger.reserved.steady_peak);
  EXPECT_EQ(read.driver.used.steady_peak, sample.driver.used.steady_peak);
  EXPECT_EQ(read.driver.baseline, sample.driver.baseline);
  EXPECT_EQ(read.driver.process.initial, sample.driver.process.initial);
  EXPECT_EQ(read.ledger.requested_at_peak, sample.ledger.requested_at_peak);
  EXPECT_EQ(read.oom->largest_free_bytes, sample.oom->largest_free_bytes);
  EXPECT_EQ(read.cell.id(), sample.cell.id());
  EXPECT_EQ(read.seed, sample.seed);
}

TEST_F(ResultFiles, hold_a_sample_that_got_nowhere) {
  Sample sample;
  sample.cell = samples_().cell;
  sample.status = SampleStatus::crash;
  sample.reason = std::string("killed; it said: \xff\xfe and\na line");
  const std::string json = to_json(sample);
  check_record(json, RecordKind::sample, "here");
  EXPECT_THAT(json, Not(HasSubstr("\n")));
  EXPECT_THAT(json, HasSubstr(R"("memory":null)"));
  EXPECT_THAT(json, HasSubstr(R"("witness":null)"));
}

TEST_F(ResultFiles, carry_null_where_a_number_is_not_finite) {
  Sample sample = samples_();
  sample.loss = {1.5, std::nan(""), std::numeric_limits<double>::infinity(), 2.5};
  const std::string json = to_json(sample);
  check_record(json, RecordKind::sample, "here");
  EXPECT_THAT(json, HasSubstr(R"("loss":[1.5,null,null,2.5])"));
  EXPECT_TRUE(std::isnan(sample_from_json(json).loss[1]));
}

TEST_F(ResultFiles, are_read_where_an_older_version_lacks_what_came_later) {
  auto json = nlohmann::json::parse(to_json(samples_()));
  for (const char* later : {"recomputed_ops_per_step", "zero_weight_share", "figures", "note",
                            "pipeline", "cpu_wait_ns", "recorded_events", "turns", "why_no_turns"})
    EXPECT_EQ(json.erase(later), 1u) << later;
  EXPECT_EQ(json.at("memory").erase("device_process_bytes"), 1u);
  const Sample read = sample_from_json(json.dump());
  EXPECT_FALSE(read.cpu_wait_ns.has_value());
  EXPECT_EQ(read.driver.process, Moments{});
}

TEST_F(ResultFiles, are_refused_without_a_field_that_every_version_has) {
  for (const char* needed : {"seed", "status", "cell", "memory", "oom", "recording_ns_per_event"}) {
    auto json = nlohmann::json::parse(to_json(samples_()));
    json.erase(needed);
    EXPECT_THAT([&] { sample_from_json(json.dump()); },
                ThrowsMessage<InputError>(HasSubstr(needed)));
  }
}

TEST_F(ResultFiles, compute_throughput_from_steady_steps_only) {
  Sample sample = samples_();
  sample.step_time_ns = {9'000'000'000, 500'000'000, 500'000'000, 1'000'000'000};
  EXPECT_THAT(to_json(sample), HasSubstr(R"("throughput_samples_per_s":12.0)"));
}

TEST_F(ResultFiles, have_no_throughput_of_a_program_that_does_not_tell_its_samples) {
  Sample sample = samples_();
  sample.step_time_ns = {9'000'000'000, 500'000'000, 500'000'000, 1'000'000'000};
  sample.samples_per_step = 0;
  EXPECT_THAT(to_json(sample), HasSubstr(R"("throughput_samples_per_s":null)"));
}

TEST_F(ResultFiles, give_back_the_request_a_sample_process_gets) {
  const SampleRequest request{
      .cell = samples_().cell, .seed = (1ULL << 53) - 1, .trace_path = "/tmp/x.hrtrace"};
  const SampleRequest read = sample_request_from_json(to_json(request));
  EXPECT_EQ(read.cell.id(), request.cell.id());
  EXPECT_EQ(read.seed, request.seed);
  EXPECT_EQ(read.trace_path, request.trace_path);
}

TEST_F(ResultFiles, name_the_field_that_breaks_the_schema) {
  std::string json = to_json(samples_());
  json.replace(json.find(R"("block":)"), 8, R"("block":"x","was":)");
  EXPECT_THAT([&] { check_record(json, RecordKind::sample, "samples.jsonl:7"); },
              ThrowsMessage<InputError>(
                  ::testing::AllOf(HasSubstr("samples.jsonl:7"), HasSubstr("#/block"))));
}

TEST_F(ResultFiles, refuse_another_major_version_and_take_another_minor_one) {
  std::string json = to_json(samples_());
  const std::string version = R"("schema_version":"1.)";
  const std::size_t at = json.find(version);
  ASSERT_NE(at, std::string::npos);
  std::string newer = json, foreign = json;
  newer.replace(at, version.size(), R"("schema_version":"1.9)");
  foreign.replace(at, version.size(), R"("schema_version":"2.)");
  check_record(newer, RecordKind::sample, "here");
  EXPECT_THAT([&] { check_record(foreign, RecordKind::sample, "here"); },
              ThrowsMessage<InputError>(HasSubstr("schema version \"2.")));
}

TEST_F(ResultFiles, refuse_what_is_no_record_of_the_kind) {
  EXPECT_THAT([] { check_record("{\"kind\": \"dog\"}", RecordKind::run, "here"); },
              ThrowsMessage<InputError>(HasSubstr("not a Headroom run record")));
  EXPECT_THAT([] { check_record("[1, 2", RecordKind::run, "here"); },
              ThrowsMessage<InputError>(HasSubstr("here: not JSON at byte")));
}

TEST_F(ResultFiles, lie_whole_in_a_run_directory) {
  RunDirectory directory = RunDirectory::create(place_.path(), "suite");
  const RunInfo info = run_info();
  directory.write(info);
  const Sample first = samples_(), second = samples_();
  directory.append(first);
  directory.append(second);
  const RecordedRun run = read_run(directory.path());
  EXPECT_EQ(to_json(run.info), to_json(info));
  ASSERT_EQ(run.samples.size(), 2u);
  EXPECT_EQ(to_json(run.samples[1]), to_json(second));
  EXPECT_FALSE(run.torn_last_line);
}

TEST_F(ResultFiles, lose_only_the_line_that_was_torn) {
  std::filesystem::path path;
  {
    RunDirectory directory = RunDirectory::create(place_.path(), "suite");
    path = directory.path();
    directory.write(run_info());
    directory.append(samples_());
    directory.append(samples_());
  }
  std::filesystem::resize_file(path / "samples.jsonl",
                               std::filesystem::file_size(path / "samples.jsonl") - 5);
  EXPECT_TRUE(read_run(path).torn_last_line);
  EXPECT_EQ(read_run(path).samples.size(), 1u);
  RunDirectory again = RunDirectory::reopen(path);
  again.append(samples_());
  EXPECT_FALSE(read_run(path).torn_last_line);
  EXPECT_EQ(read_run(path).samples.size(), 2u);
}

TEST_F(ResultFiles, name_file_and_line_of_a_broken_sample) {
  RunDirectory directory = RunDirectory::create(place_.path(), "suite");
  directory.write(run_info());
  write_file_durably(directory.path() / "samples.jsonl", to_json(samples_()) + "\n{\"kind\":1}\n");
  EXPECT_THAT([&] { read_run(directory.path()); },
              ThrowsMessage<InputError>(HasSubstr("samples.jsonl:2: ")));
}

TEST_F(ResultFiles, are_written_by_one_run_at_a_time) {
  const RunDirectory directory = RunDirectory::create(place_.path(), "suite");
  EXPECT_THAT([&] { RunDirectory::reopen(directory.path()); },
              ThrowsMessage<InputError>(HasSubstr("another headroom is writing")));
}

TEST_F(ResultFiles, say_where_a_run_cannot_be_written) {
  const auto file = place_.write("file", "text");
  EXPECT_THAT([&] { RunDirectory::create(file / "runs", "suite"); },
              ThrowsMessage<InputError>(HasSubstr("--out DIR")));
  EXPECT_THAT([&] { read_run(place_.path()); },
              ThrowsMessage<InputError>(HasSubstr("not a run directory")));
}

}  // namespace
}  // namespace headroom::result_files_test
