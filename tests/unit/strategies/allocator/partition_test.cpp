// Which part serves a request, that a full part refuses whatever the other parts have free, and the
// two partitions of a published guide: layers 40/60, and generator and discriminator 0.4/0.6 that
// become 0.5/0.5.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "harness/base/error.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "harness/trace/validator.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::partition_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::ThrowsMessage;

class Partition : public DecisionLog {
 protected:
  Block take_for(const char* name, Bytes bytes) {
    return allocator().allocate(bytes, {.name = name});
  }
  void refuses(const std::string& spec, const std::string& because) {
    EXPECT_THAT([&] { make(spec, "meta(capacity=100MiB)"); },
                ThrowsMessage<InputError>(HasSubstr(because)))
        << spec;
  }
};

TEST_F(Partition, gives_each_part_an_allocator_and_a_budget_of_its_own) {
  make("partition(shares=a:0.4/rest:0.6)|bfc", "meta(capacity=100MiB)");
  take_for("a", kMiB);
  take_for("b", kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 40MiB", "1MiB at 1+0", "segment 2: 60MiB", "1MiB at 2+0"));
}

TEST_F(Partition, takes_shares_in_bytes_as_logical_devices_have_them) {
  make("partition(shares=a:24MiB/rest:32MiB)|bfc", "meta(capacity=100MiB)");
  take_for("a", 1);
  take_for("b", 1);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 24MiB", "256B at 1+0", "segment 2: 32MiB", "256B at 2+0"));
}

TEST_F(Partition, serves_a_module_wherever_it_stands_in_the_name) {
  make("partition(shares=a:0.5/rest:0.5)|bfc", "meta(capacity=100MiB)");
  for (const char* inside : {"a", "a.0.conv", "real.a.0.backward"}) take_for(inside, 1);
  for (const char* outside : {"", "ab.0", "a_noise", "images"}) take_for(outside, 1);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 50MiB", "256B at 1+0", "256B at 1+256B",
                                       "256B at 1+512B", "segment 2: 50MiB", "256B at 2+0",
                                       "256B at 2+256B", "256B at 2+512B", "256B at 2+768B"));
}

TEST_F(Partition, serves_from_the_part_that_names_the_module_most_closely) {
  make("partition(shares=encoder:0.2/encoder.1:0.2/rest:0.6)|bfc", "meta(capacity=100MiB)");
  take_for("encoder.1.attention", 1);
  take_for("encoder.10.attention", 1);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 20MiB", "256B at 1+0", "segment 2: 20MiB", "256B at 2+0"));
  EXPECT_THAT(allocator().why_not_engaged(), Optional(HasSubstr("rest requested nothing")));
}

TEST_F(Partition, refuses_where_one_part_is_full_and_says_what_the_others_have) {
  make("partition(shares=a:40MiB/rest:60MiB)|bfc", "meta(capacity=100MiB)");
  take_for("a", 15 * kMiB);
  take_for("b", 10 * kMiB);
  EXPECT_THAT([&] { take_for("a", 26 * kMiB); },
              ThrowsMessage<OutOfMemory>(
                  AllOf(HasSubstr("no room for 26.00 MiB"),
                        HasSubstr("in the part of a, which may hold 40.00 MiB and has 15.00 MiB in "
                                  "use, while the other parts have 50.00 MiB left"))));
  EXPECT_EQ(take_for("b", 20 * kMiB).size, 20 * kMiB);
}

TEST_F(Partition, changes_its_shares_after_the_steps_it_was_told) {
  make("partition(after=2,shares=a:0.4/rest:0.6,then=0.5/0.5)|caching", "meta(capacity=100MiB)");
  take_for("a", 30 * kMiB);
  give(take_for("b", 60 * kMiB));
  allocator().synchronized();
  EXPECT_THROW(take_for("a", 20 * kMiB), OutOfMemory);
  EXPECT_THAT(allocator().why_not_engaged(),
              Optional(HasSubstr("after 2 steps, but there were only 1")));
  decisions();
  allocator().synchronized();
  take_for("a", 20 * kMiB);
  EXPECT_THROW(take_for("b", 60 * kMiB), OutOfMemory);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 2 back", "segment 3: 20MiB", "20MiB at 3+0", "refused 60MiB"));
  EXPECT_EQ(allocator().why_not_engaged(), std::nullopt);
}

TEST_F(Partition, says_so_when_a_part_could_not_shrink) {
  make("partition(after=1,shares=a:0.4/rest:0.6,then=0.5/0.5)|caching", "meta(capacity=100MiB)");
  take_for("a", kMiB);
  take_for("b", 60 * kMiB);
  allocator().synchronized();
  EXPECT_THAT(allocator().why_not_engaged(),
              Optional(HasSubstr("rest holds 60.00 MiB and so did not shrink to 50.00 MiB")));
}

TEST_F(Partition, asks_every_part_whether_it_did_what_its_name_says) {
  make("partition(shares=a:0.5/rest:1MiB)|bfc(growth=on)", "meta(capacity=100MiB)");
  take_for("a", 1);
  take_for("b", 1);
  EXPECT_THAT(allocator().why_not_engaged(),
              Optional(HasSubstr("partition: rest: bfc(growth=on): the first "
                                 "region already took the whole limit")));
}

TEST_F(Partition, names_what_is_wrong_with_its_parameters) {
  refuses("partition|bfc", "one part must take what no other names");
  refuses("partition(shares=a:0.4)|bfc", "one part must take what no other names");
  refuses("partition(shares=a/rest:0.4)|bfc", "'a' is not of the form module:share");
  refuses("partition(shares=a+a:0.4/rest:0.4)|bfc", "'a' is named twice");
  refuses("partition(shares=rest:0.4/a+rest:0.4)|bfc", "'rest' is named twice");
  refuses("partition(shares=a:0.5/rest:0.6)|bfc", "add up to 110.00 MiB");
  refuses("partition(shares=a:1.5/rest:0.1)|bfc", "above 0 and at most 1");
  refuses("partition(shares=a:0/rest:0.1)|bfc", "above 0 and at most 1");
  refuses("partition(shares=a:half/rest:0.1)|bfc", "'half'");
  refuses("partition(after=3,shares=a:0.5/rest:0.5)|bfc", "go together");
  refuses("partition(after=0,shares=a:0.5/rest:0.5,then=0.4/0.6)|bfc", "counts steps from 1");
  refuses("partition(after=3,shares=a:0.5/rest:0.5,then=0.5)|bfc", "1 shares for 2 parts");
  refuses("partition(after=3,shares=a:0.5/rest:0.5,then=0.5/0.6)|bfc", "add up to");
  refuses("partition(shares=a:0.5/rest:0.5)", "needs a strategy behind it");
}

// Three steps of a small network.
Sample train(const std::string& workload, const std::string& allocator, const std::string& device,
             const std::string& trace_path) {
  const Cell cell{.workload = Spec::parse(workload),
                  .device = Spec::parse(device),
                  .rules = "onednn",
                  .allocator = Spec::parse_composition(allocator),
                  .warmup_steps = 1,
                  .measured_steps = 2};
  return run_cell(cell, 7, trace_path);
}

Trace trace_of(const std::string& workload, const std::string& allocator,
               const std::string& device) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("headroom-partition-" + std::to_string(::getpid()) + ".json.gz");
  const Sample sample = train(workload, allocator, device, path.string());
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  Trace trace = read_trace(path.string());
  std::filesystem::remove(path);
  return trace;
}

struct Published {
  const char* name;
  const char* workload;
  const char* allocator;
};

class PublishedPartition : public ::testing::TestWithParam<Published> {};

INSTANTIATE_TEST_SUITE_P(
    Of, PublishedPartition,
    ::testing::Values(
        Published{"resnet_layers", "resnet(depth=18,width=8,batch=4)",
                  "partition(shares=conv1+layer1+layer2:0.4/layer3+layer4+fc+rest:0.6)|"
                  "bfc(growth=on)"},
        Published{"bert_layers", "bert(batch=1,heads=2,hidden=16,layers=12,sequence=16)",
                  "partition(shares=embeddings+encoder.0+encoder.1+encoder.2+encoder.3+encoder.4+"
                  "encoder.5:0.4/rest:0.6)|bfc(growth=on)"},
        Published{"gan_networks", "gan(batch=4,width=4)",
                  "partition(after=2,shares=generator:0.4/discriminator+rest:0.6,then=0.5/0.5)|"
                  "caching"}),
    [](const auto& info) { return info.param.name; });

TEST_P(PublishedPartition, trains_and_leaves_the_same_trace_on_host_and_on_meta) {
  const auto [name, workload, allocator] = GetParam();
  const Trace host = trace_of(workload, allocator, "host(capacity=256MiB)");
  const Trace meta = trace_of(workload, allocator, "meta(capacity=256MiB)");
  EXPECT_EQ(first_difference(host, meta), "");
  EXPECT_THAT(violations(host), IsEmpty());
}

TEST(PartitionInTraining, ends_out_of_memory_in_one_part_where_one_pool_would_do) {
  const std::string workload = "resnet(depth=18,width=8,batch=4)";
  const std::string device = "meta(capacity=16MiB)";
  EXPECT_EQ(train(workload, "caching", device, "").status, SampleStatus::ok);
  const Sample split = train(workload, "partition(shares=fc:0.7/rest:0.3)|caching", device, "");
  EXPECT_EQ(split.status, SampleStatus::oom);
  EXPECT_THAT(split.reason, HasSubstr("in the part of rest"));
}

}  // namespace
}  // namespace headroom::partition_test
