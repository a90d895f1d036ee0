// Training with input pipelines: they keep the mathematics, and samples record what they did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/runner/run_cell.h"

namespace headroom::pipeline_run_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const char* const kResNet =
    "resnet(batch=4,depth=18,epoch=10,held_out_batches=2,last_batch=keep,width=8)";
const char* const kGan = "gan(batch=4,latent=8,width=4)";
const char* const kBert = "bert(batch=2,lengths=bucketed,sequence=32,size=tiny,vocabulary=500)";

Cell cell(const std::string& workload, const std::string& pipeline,
          const std::string& device = "host(capacity=1GiB)") {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .pipeline = Spec::parse_composition(pipeline),
            .warmup_steps = 1,
            .measured_steps = 5};
  return cell;
}

Sample run(const std::string& workload, const std::string& pipeline) {
  Sample sample = run_cell(cell(workload, pipeline), 7, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  EXPECT_THAT(sample.loss, SizeIs(6));
  return sample;
}

struct Case {
  std::string workload, pipeline;
};

class EveryPipelineThatKeepsTheOrder : public ::testing::TestWithParam<Case> {};

TEST_P(EveryPipelineThatKeepsTheOrder, trains_on_the_batches_of_direct_bit_for_bit) {
  const Sample direct = run(GetParam().workload, "direct");
  const Sample other = run(GetParam().workload, GetParam().pipeline);
  EXPECT_EQ(direct.loss, other.loss);
  EXPECT_EQ(direct.held_out_accuracy, other.held_out_accuracy);
}

INSTANTIATE_TEST_SUITE_P(
    Pipeline, EveryPipelineThatKeepsTheOrder,
    ::testing::Values(Case{kResNet, "prefetch(2)"}, Case{kResNet, "memory"},
                      Case{kResNet, "stream"}, Case{kResNet, "cache|stream"},
                      Case{kResNet, "prefetch(auto)|map(threads=2)|cache|stream"},
                      Case{kResNet, "prefetch(1)|map|interleave(2)|cache|memory"},
                      Case{kResNet, "staging(1)|stream"},
                      Case{kResNet, "staging(2)|prefetch(1)|map(threads=2)|cache|stream"},
                      Case{kGan, "staging(2)"}, Case{kBert, "staging(2)"},
                      Case{kGan, "prefetch(2)"}, Case{kGan, "prefetch(2)|map(threads=2)|stream"},
                      Case{kBert, "prefetch(1)"}, Case{kBert, "prefetch(3)|slow(ms=1)|direct"}));

TEST(PipelineRun, a_shuffle_buffer_trains_on_other_batches_and_the_same_for_the_same_seed) {
  const Sample direct = run(kResNet, "direct");
  const Sample serial = run(kResNet, "shuffle(6)|stream");
  const Sample parallel = run(kResNet, "prefetch(2)|map(threads=2)|shuffle(6)|memory");
  EXPECT_NE(direct.loss, serial.loss);
  EXPECT_EQ(serial.loss, parallel.loss);
}

TEST(PipelineRun, micro_batches_come_through_a_prefetch_in_their_order) {
  const auto losses = [](const std::string& pipeline) {
    Cell accumulated = cell("resnet(batch=4,depth=18,width=8)", pipeline);
    accumulated.accumulation = Spec::parse("micro_batches(k=2)");
    const Sample sample = run_cell(accumulated, 7, "");
    EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
    return sample.loss;
  };
  EXPECT_EQ(losses("direct"), losses("prefetch(3)|map(threads=2)|stream"));
}

TEST(PipelineRun, records_every_stage_with_its_bytes_after_each_step) {
  const Sample sample = run(kResNet, "prefetch(2)|cache|stream");
  std::vector<std::string> names;
  for (const StageReport& stage : sample.pipeline.stages) names.push_back(stage.name);
  EXPECT_THAT(names, ::testing::ElementsAre("prefetch(2)", "batch", "map", "cache", "stream"));
  EXPECT_EQ(sample.pipeline.basis, PipelineRecord::Basis::measured);
  EXPECT_EQ(sample.pipeline.stages[3].host_bytes_peak, 10u * 3073) << "an epoch of ten images";
  EXPECT_THAT(sample.pipeline.host_bytes_after_step, SizeIs(6));
  EXPECT_GE(sample.pipeline.host_bytes_after_step.back(), 10u * 3073);
}

TEST(PipelineRun, is_invalid_where_a_stage_did_not_do_what_its_name_promises) {
  const Sample sample = run_cell(cell("resnet(batch=4,depth=18,width=8)", "cache|stream"), 7, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_THAT(sample.reason, HasSubstr("pipeline stage cache"));
}

TEST(PipelineRun, on_meta_estimates_what_the_spec_tells_and_loads_nothing) {
  const Sample sample = run_cell(cell(kBert, "prefetch(3)|direct", "meta(capacity=1GiB)"), 7, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  EXPECT_EQ(sample.pipeline.basis, PipelineRecord::Basis::estimated);
  ASSERT_THAT(sample.pipeline.stages, SizeIs(2));
  EXPECT_EQ(sample.pipeline.stages[1].host_bytes_peak, std::nullopt);
  // The longest batch, all numbers of 4 bytes: tokens, positions, segments and mask of 2 × 32; five
  // guesses (15 % of 32) a sample, each a row and a label; a dropout key of two.
  EXPECT_EQ(sample.pipeline.stages[0].host_bytes_peak, 3u * 4 * (4 * 2 * 32 + 2 * 2 * 5 + 2));
}

struct Unsupported {
  std::string workload, pipeline, told;
};

class UnsupportedPipeline : public ::testing::TestWithParam<Unsupported> {};

TEST_P(UnsupportedPipeline, stays_in_the_record_with_the_reason_on_every_device) {
  for (const char* device : {"host(capacity=1GiB)", "meta(capacity=1GiB)"}) {
    const Sample sample = run_cell(cell(GetParam().workload, GetParam().pipeline, device), 7, "");
    EXPECT_EQ(sample.status, SampleStatus::unsupported) << device;
    EXPECT_THAT(sample.reason, HasSubstr(GetParam().told)) << device;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pipeline, UnsupportedPipeline,
    ::testing::Values(Unsupported{kBert, "prefetch(2)|map(threads=2)|memory",
                                  "delivers whole batches"},
                      Unsupported{"resnet(batch=4,depth=18,labels=shuffled,width=8)", "stream",
                                  "labels=shuffled permutes the labels of all records at once"}));

TEST(PipelineRun, records_survive_being_written_and_read) {
  Sample sample = run(kResNet, "prefetch(2)|cache|stream");
  const Sample read = sample_from_json(to_json(sample));
  EXPECT_EQ(read.pipeline.stages, sample.pipeline.stages);
  EXPECT_EQ(read.pipeline.host_bytes_after_step, sample.pipeline.host_bytes_after_step);
  EXPECT_EQ(read.cell.id(), sample.cell.id());
}

}  // namespace
}  // namespace headroom::pipeline_run_test
