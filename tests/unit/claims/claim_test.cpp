#include "harness/claims/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include <fstream>
#include <string>

#include "harness/base/error.h"
#include "harness/results/metric.h"

namespace headroom::claim_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string kSound = R"TOML(id = "T1"
title = "Title"
statement = "Less is held."
instead = "Do this."
pitfalls = ["one"]
limits = []
[source]
title = "Post"
section = "1.3"
date = "2025-09-17"
[subject]
engine = "Engine"
device_class = "cuda"
text = "an engine on a GPU"
allocators = ["bfc"]
[[experiment]]
name = "v100"
device = "meta(card=v100-16gb)"
rules = "dense"
workload = "resnet(depth=50,batch=1)"
sweep = { parameter = "batch", values = [1, 32] }
warmup_steps = 3
measured_steps = 7
blocks = 4
timeout_s = 60
estimated_seconds = 1.5
[experiment.arms]
prealloc = { allocator = "bfc(growth=off)" }
growth = { allocator = "bfc(growth=on)" }
[[part]]
name = "number"
text = "62 % less"
kind = "number"
judge = "ratio"
metrics = ["reserved_bytes.initial"]
experiments = ["v100"]
baseline = "prealloc"
treatment = "growth"
claimed = { value = -0.62, tolerance = 0.1 }
)TOML";

class ClaimFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ =
        std::filesystem::temp_directory_path() /
        ("headroom-claims-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = directory_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  // Writes the valid file with one text replaced by another.
  std::string write_changed(const std::string& from, const std::string& to) {
    std::string text = kSound;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return write("t1.toml", text.replace(at, from.size(), to));
  }

  std::filesystem::path directory_;
};

TEST_F(ClaimFile, is_read_whole) {
  const Claim claim = read_claim(write("t1.toml", kSound));
  EXPECT_EQ(claim.id, "T1");
  EXPECT_EQ(claim.source.date, "2025-09-17");
  EXPECT_EQ(claim.source.url, "");
  EXPECT_THAT(claim.subject.allocators, ElementsAre("bfc"));
  ASSERT_EQ(claim.parts.size(), 1u);
  EXPECT_EQ(claim.parts[0].kind, PartKind::number);
  EXPECT_EQ(claim.parts[0].claimed.value, -0.62);
  EXPECT_EQ(claim.parts[0].claimed.direction, -1);
}

TEST_F(ClaimFile, becomes_one_experiment_per_sweep_value) {
  const auto experiments = experiments_of(read_claim(write("t1.toml", kSound)));
  ASSERT_EQ(experiments.size(), 2u);
  const Experiment& last = experiments[1];
  EXPECT_EQ(last.id, "T1/v100/batch=32");
  EXPECT_EQ(last.origin, "T1");
  EXPECT_EQ(last.point, "32");
  EXPECT_EQ(last.blocks, 4);
  EXPECT_EQ(last.timeout_s, 60);
  EXPECT_EQ(last.estimated_seconds, 1.5);
  ASSERT_EQ(last.arms.size(), 2u);
  EXPECT_EQ(last.arms[0].name, "prealloc") << "the file's order, not the alphabet's";
  EXPECT_EQ(last.arms[1].cell.workload.to_string(), "resnet(batch=32,depth=50)");
  EXPECT_EQ(last.arms[1].cell.allocator.to_string(), "bfc(growth=on)");
  EXPECT_EQ(last.arms[1].cell.warmup_steps, 3);
  EXPECT_EQ(last.arms[1].cell.measured_steps, 7);
}

TEST_F(ClaimFile, has_arms_that_may_differ_on_any_axis) {
  const Claim claim = read_claim(write_changed(
      "growth = { allocator = \"bfc(growth=on)\" }",
      "growth = { allocator = \"caching\", workload = \"gan(batch=2)\", optimizer = \"adam\" }"));
  const Experiment experiment = experiments_of(claim).back();
  EXPECT_EQ(experiment.arms[0].cell.workload.to_string(), "resnet(batch=32,depth=50)");
  EXPECT_EQ(experiment.arms[1].cell.workload.to_string(), "gan(batch=32)");
  EXPECT_EQ(experiment.arms[1].cell.optimizer.to_string(), "adam");
}

TEST_F(ClaimFile, may_sweep_a_parameter_of_another_axis) {
  const Claim claim = read_claim(write_changed(
      "sweep = { parameter = \"batch\", values = [1, 32] }",
      "sweep = { axis = \"allocator\", parameter = \"limit\", values = [\"1GiB\"] }"));
  const auto experiments = experiments_of(claim);
  ASSERT_EQ(experiments.size(), 1u);
  EXPECT_EQ(experiments[0].id, "T1/v100/limit=1GiB");
  EXPECT_EQ(experiments[0].arms[1].cell.allocator.to_string(), "bfc(growth=on,limit=1GiB)");
}

TEST_F(ClaimFile, may_name_a_scenario_that_needs_no_workload_and_no_allocator) {
  std::string text = kSound;
  text.replace(text.find("workload = \"resnet(depth=50,batch=1)\"\n"), 38, "");
  text.replace(text.find("sweep = "), text.find("warmup_steps") - text.find("sweep = "), "");
  EXPECT_THAT([&] { read_claim(write("a.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("trains but names no workload")));
  for (const char* arm : {"allocator = \"bfc(growth=off)\"", "allocator = \"bfc(growth=on)\""})
    text.replace(text.find(arm), std::string(arm).size(),
                 "scenario = \"script(case=large,file=free_memory)\"");
  const Experiment experiment = experiments_of(read_claim(write("b.toml", text))).front();
  EXPECT_EQ(experiment.arms[0].cell.scenario.to_string(), "script(case=large,file=free_memory)");
  text.replace(text.find("file=free_memory"), 16, "file=fre_memory");
  EXPECT_THAT([&] { read_claim(write("c.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("fre_memory.py")));
}

TEST_F(ClaimFile, of_a_predicate_says_whether_it_is_to_hold) {
  std::string text = kSound;
  text.replace(text.find("judge = \"ratio\""), 15, "judge = \"predicate\"");
  text.replace(text.find("baseline = \"prealloc\"\n"), 22, "");
  const std::string claimed = "value = -0.62, tolerance = 0.1";
  EXPECT_THAT([&] { read_claim(write("a.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("Known: holds")));
  text.replace(text.find(claimed), claimed.size(), "holds = 1");
  EXPECT_THAT([&] { read_claim(write("b.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("must be true or false")));
  text.replace(text.find("holds = 1"), 9, "holds = false");
  EXPECT_EQ(read_claim(write("c.toml", text)).parts[0].claimed.holds, false);
}

struct Fault {
  std::string from, to;
  int line;
  std::string says;
};

TEST_F(ClaimFile, is_refused_with_file_and_line_when_something_is_wrong) {
  const std::vector<Fault> faults = {
      {"title = \"Title\"", "title = ", 2, ""},
      {"title = \"Title\"", "tilte = \"Title\"", 2, "did you mean 'title'?"},
      {"title = \"Title\"\n", "", 1, "lacks the key 'title'"},
      {"id = \"T1\"", "id = 7", 1, "must be a text"},
      {"date = ", "dat = ", 10, "did you mean 'date'?"},
      {"device_class = \"cuda\"", "device_class = \"cuba\"", 13, "did you mean 'cuda'?"},
      {"device = \"meta", "device = \"mta", 18, "did you mean 'meta'?"},
      {"resnet(depth=50", "resnet(depth=", 20, "not of the form"},
      {"workload = \"resnet", "workload = \"resnt", 20, "did you mean 'resnet'?"},
      {"parameter = \"batch\"", "parameter = \"batsh\"", 21, "did you mean 'batch'?"},
      {"bfc(growth=on)", "bfc(grwth=on)", 29, "did you mean 'growth'?"},
      {"parameter = \"batch\"", "parametr = \"batch\"", 21, "did you mean 'parameter'?"},
      {"values = [1, 32]", "values = [1.5]", 21, "whole numbers or texts"},
      {"values = [1, 32]", "values = []", 21, "must not be empty"},
      {"blocks = 4", "blocks = 0", 24, "from 1 on"},
      {"growth = { allocator", "growth = { alocator", 29, "did you mean 'allocator'?"},
      {"kind = \"number\"", "kind = \"numbr\"", 33, "did you mean 'number'?"},
      {"judge = \"ratio\"", "judge = \"slope\"", 34, "Known: ratio, difference, bound"},
      {"reserved_bytes.initial", "reserved_byte.initial", 35, "'reserved_bytes.initial'"},
      {"experiments = [\"v100\"]", "experiments = [\"v10\"]", 36, "did you mean 'v100'?"},
      {"baseline = \"prealloc\"", "baseline = \"preloc\"", 37, "did you mean 'prealloc'?"},
      {"treatment = \"growth\"", "treatment = \"grow\"", 38, "did you mean 'growth'?"},
      {"tolerance = 0.1", "tolerance = 0.7", 39, "at most 0.5"},
      {"value = -0.62", "value = -1.2", 39, "above -1"},
      {"value = -0.62, tolerance = 0.1", "direction = 2", 39, "must be 1 (more) or -1 (less)"},
      {"tolerance = 0.1", "tolerance = 0.1, delta = 0.9", 39, "half of the claimed effect"},
      {"text = \"62 % less\"", "text = \"t\"\nfound = \"It held less.\"", 33, "one {less|more}"},
      {"text = \"62 % less\"", "text = \"t\"\nfound = \"It held 62 {less|more}.\"", 33,
       "without digits"},
      {"text = \"62 % less\"", "text = \"t\"\nfound = \"It held {value}.\"", 33, "one {less|more}"},
      {"text = \"62 % less\"", "text = \"t\"\nfound = \"It held {less|more} or {less|more}.\"", 33,
       "one {less|more}"},
  };
  for (const Fault& fault : faults) {
    const std::string path = write_changed(fault.from, fault.to);
    EXPECT_THAT(
        [&] { read_claim(path); },
        ThrowsMessage<InputError>(AllOf(HasSubstr(path + ":" + std::to_string(fault.line) + ": "),
                                        HasSubstr(fault.says))))
        << fault.to;
  }
}

TEST_F(ClaimFile, may_have_a_sentence_that_the_figures_fill) {
  const std::string path = write_changed(
      "judge = \"ratio\"", "judge = \"ratio\"\nfound = \"Growth held {less|more} than that.\"");
  EXPECT_EQ(read_claim(path).parts[0].found, "Growth held {less|more} than that.");
}

TEST_F(ClaimFile, of_a_bound_has_a_limit_and_no_baseline) {
  const std::string claimed = "claimed = { value = -0.62, tolerance = 0.1 }";
  std::string text = kSound;
  text.replace(text.find("judge = \"ratio\""), 15, "judge = \"bound\"");
  EXPECT_THAT([&] { read_claim(write("a.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("no meaning for the judge 'bound'")));
  text.replace(text.find("baseline = \"prealloc\"\n"), 22, "");
  EXPECT_THAT([&] { read_claim(write("b.toml", text)); },
              ThrowsMessage<InputError>(HasSubstr("Known: at_least, at_most")));
  text.replace(text.find(claimed), claimed.size(), "claimed = { at_least = 1 }");
  EXPECT_EQ(read_claim(write("c.toml", text)).parts[0].claimed.at_least, 1.0);
}

TEST_F(ClaimFile, is_read_with_its_neighbours_in_the_order_of_their_names) {
  std::string second = kSound;
  second.replace(second.find("T1"), 2, "T2");
  write("b.toml", kSound);
  write("a.toml", second);
  write("notes.md", "not a claim");
  const auto claims = read_claims(directory_.string());
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0].id, "T2");
  EXPECT_EQ(claims[1].id, "T1");
}

TEST_F(ClaimFile, may_not_take_the_id_of_another) {
  write("a.toml", kSound);
  write("b.toml", kSound);
  EXPECT_THAT([&] { read_claims(directory_.string()); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("b.toml"), HasSubstr("'T1' is taken"))));
}

TEST_F(ClaimFile, has_to_exist) {
  EXPECT_THROW(read_claims((directory_ / "absent").string()), InputError);
  EXPECT_THROW(read_claim((directory_ / "absent.toml").string()), InputError);
}

TEST(ClaimsOfThisRepository, stand_in_the_table_of_their_readme) {
  std::ifstream file(std::string(PROJECT_ROOT) + "/bench/claims/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const Claim& claim : read_claims(std::string(PROJECT_ROOT) + "/bench/claims"))
    EXPECT_THAT(readme, HasSubstr("| " + claim.id + " | " + claim.title + " |"));
}

TEST(ClaimsOfThisRepository, are_all_well_formed) {
  const auto claims = read_claims(std::string(PROJECT_ROOT) + "/bench/claims");
  EXPECT_FALSE(claims.empty());
  for (const Claim& claim : claims) {
    EXPECT_FALSE(experiments_of(claim).empty()) << claim.id;
    EXPECT_FALSE(claim.parts.empty()) << claim.id;
  }
}

}  // namespace
}  // namespace headroom::claim_test
