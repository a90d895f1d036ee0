// Steps that are captured once and replayed: they give the same numbers, keep one block permanently
// and make no further requests for memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/program/captured.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "harness/whatif/training_requests.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::captured_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr const char* kHost = "host(capacity=1GiB)";
constexpr const char* kMeta = "meta(capacity=1GiB)";
constexpr const char* kGan = "gan(batch=4,latent=8,width=4)";
constexpr const char* kWorkloads[] = {"resnet(depth=18,width=8,batch=4)", "bert(preset=tiny)",
                                      "gpt(preset=tiny,vocabulary=500)", kGan,
                                      "gan(model=resnet,preset=tiny)"};
constexpr const char* kPools[] = {"captured", "captured(pool=own)"};

using Axes = std::vector<std::pair<const char*, const char*>>;

Cell cell_of(const std::string& workload, const std::string& execution, const std::string& device,
             const Axes& axes = {}) {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .optimizer = Spec("adam"),
            .warmup_steps = 1,
            .measured_steps = 3};
  set_axis(cell, "execution", execution);
  for (const auto& [axis, value] : axes) set_axis(cell, axis, value);
  return cell;
}

Sample run(const std::string& workload, const std::string& execution, const std::string& device,
           const Axes& axes = {}) {
  Sample sample = run_cell(cell_of(workload, execution, device, axes), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok)
      << workload << " " << execution << ": " << sample.reason;
  return sample;
}

TEST(Captured, changes_no_loss) {
  for (const char* workload : kWorkloads) {
    const std::vector<double> plain = run(workload, "last_use", kHost).loss;
    for (const char* pool : kPools)
      EXPECT_EQ(run(workload, pool, kHost).loss, plain) << workload << " " << pool;
  }
}

TEST(Captured, changes_no_loss_where_steps_differ_in_shape_or_an_evaluation_follows) {
  for (const char* workload :
       {"resnet(preset=tiny,batch=4,epoch=10,last_batch=keep,evaluate_every=2)",
        "gpt(preset=tiny,lengths=bucketed,evaluate_every=3)"}) {
    const auto losses = [&](const char* execution) {
      Cell cell = cell_of(workload, execution, kHost);
      cell.measured_steps = 9;
      const Sample sample = run_cell(cell, 5, "");
      EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
      return sample.loss;
    };
    const std::vector<double> plain = losses("last_use");
    for (const char* pool : kPools) EXPECT_EQ(losses(pool), plain) << workload << " " << pool;
  }
}

TEST(Captured, goes_with_what_changes_the_step) {
  for (const Axes& axes :
       {Axes{{"accumulation", "micro_batches(k=2)"}}, Axes{{"checkpointing", "sqrt"}},
        Axes{{"checkpointing", "offload"}}, Axes{{"checkpointing", "every(keep=host,n=2)"}},
        Axes{{"precision", "fp16"}}, Axes{{"optimizer", "sgd(step=in_backward)"}},
        Axes{{"optimizer", "adam(loop=foreach)"}}, Axes{{"pruning", "magnitude(sparsity=0.8)"}}}) {
    const char* const workload = "gpt(preset=tiny,layers=4,hidden=32)";
    const Sample captured = run(workload, "captured", kHost, axes);
    const Sample plain = run(workload, "last_use", kHost, axes);
    EXPECT_EQ(captured.loss, plain.loss) << axes.front().second;
    EXPECT_GE(captured.ledger.requested.overall_peak, plain.ledger.requested.overall_peak)
        << axes.front().second;
  }
}

TEST(Captured, changes_no_loss_under_any_allocator) {
  const std::vector<double> plain = run(kGan, "last_use", kHost).loss;
  for (const char* allocator :
       {"malloc", "bfc(growth=off)", "caching", "expandable", "stitching", "pool", "arena", "async",
        "buddy", "tlsf", "planned", "poison|malloc"})
    EXPECT_EQ(run(kGan, "captured(pool=own)", kHost, {{"allocator", allocator}}).loss, plain)
        << allocator;
}

TEST(Captured, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  for (const char* workload : kWorkloads) {
    TemporaryDirectory directory;
    const auto trace = [&](const char* device) {
      const std::string path = (directory.path() / "run.hrtrace").string();
      EXPECT_EQ(run_cell(cell_of(workload, "captured", device), 5, path).status, SampleStatus::ok);
      return read_trace(path);
    };
    EXPECT_EQ(first_difference(trace(kHost), trace(kMeta)), "") << workload;
  }
}

TEST(Captured, asks_for_nothing_in_any_step) {
  for (const char* pool : kPools) {
    const Cell cell = cell_of(kGan, pool, kMeta);
    const TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, "dense");
    for (const Request& request : training_requests(plan, 3).requests) EXPECT_EQ(request.step, 0);
    const Sample sample = run_cell(cell, 5, "");
    EXPECT_EQ(sample.recording.steady_events, 0U);
    EXPECT_THAT(sample.ledger.device_allocations, ::testing::AllOf(SizeIs(4), Each(0U)));
  }
}

TEST(Captured, holds_its_peak_from_before_the_first_step_to_the_end) {
  const Ledger ledger = run("resnet(depth=18,width=8,batch=4)", "captured", kMeta).ledger;
  for (const Moments& rung : {ledger.requested, ledger.allocated, ledger.reserved}) {
    EXPECT_GT(rung.overall_peak, 0U);
    for (const Bytes bytes : {rung.initial, rung.after_step_1, rung.warmup_peak, rung.steady_peak})
      EXPECT_EQ(bytes, rung.overall_peak);
  }
  EXPECT_THAT(ledger.allocated_after_step,
              ::testing::AllOf(SizeIs(4), Each(ledger.allocated.overall_peak)));
}

// Sizes of the blocks taken for the pools.
std::vector<Bytes> pools_of(const char* execution) {
  const Cell cell = cell_of(kGan, execution, kMeta);
  const TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, "dense");
  std::vector<Bytes> bytes;
  for (const Request& request : training_requests(plan, 1).requests)
    if (request.kind == Request::Kind::alloc && request.role == Role::workspace)
      bytes.push_back(request.bytes);
  return bytes;
}

TEST(Captured, shares_one_pool_of_the_largest_size_or_takes_one_for_each_program) {
  const std::vector<Bytes> own = pools_of("captured(pool=own)");
  ASSERT_THAT(own, SizeIs(2)) << "discriminator and generator";
  EXPECT_THAT(pools_of("captured"),
              ::testing::ElementsAre(*std::max_element(own.begin(), own.end())));
}

TEST(Captured, takes_a_pool_of_its_own_from_the_share_of_the_module_that_the_program_is_named_for) {
  const Axes shares = {{"allocator", "partition(shares=generator:600KiB/rest:500MiB)|malloc"}};
  run(kGan, "captured", kMeta, shares);
  const Sample own = run_cell(cell_of(kGan, "captured(pool=own)", kMeta, shares), 5, "");
  EXPECT_EQ(own.status, SampleStatus::oom);
  EXPECT_THAT(own.reason, HasSubstr("in the part of generator"));
}

TEST(Captured, says_in_its_figures_what_the_pools_take) {
  const Sample own = run(kGan, "captured(pool=own)", kMeta);
  const Sample shared = run(kGan, "captured", kMeta);
  EXPECT_EQ(own.figures.at("captured_pool_bytes") - shared.figures.at("captured_pool_bytes"),
            static_cast<double>(own.ledger.requested.overall_peak -
                                shared.ledger.requested.overall_peak));
  EXPECT_FALSE(run(kGan, "last_use", kMeta).figures.contains("captured_pool_bytes"));
}

TEST(Captured, copies_to_the_host_and_back_as_much_as_without) {
  const Axes offload = {{"checkpointing", "offload"}};
  const auto figures = [&](const char* execution, const char* device) {
    return run("gpt(preset=tiny,layers=4)", execution, device, offload).figures;
  };
  const auto captured = figures("captured", kHost), plain = figures("last_use", kHost);
  EXPECT_EQ(captured.at("offloaded_bytes_per_step"), plain.at("offloaded_bytes_per_step"));
  EXPECT_GE(captured.at("offload_peak_bytes"), plain.at("offload_peak_bytes"));
  EXPECT_EQ(captured, figures("captured", kMeta));
}

TEST(Captured, runs_out_of_memory_before_the_first_step_or_not_at_all) {
  const Sample sample = run_cell(
      cell_of("resnet(depth=18,width=8,batch=64)", "captured", "meta(capacity=8MiB)"), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::oom);
  EXPECT_THAT(sample.step_time_ns, ::testing::IsEmpty());
}

// Two steps do not repeat any of the sixteen shapes.
TEST(Captured, is_invalid_where_nothing_was_replayed) {
  Cell cell = cell_of("gpt(preset=tiny,lengths=ragged)", "captured", kMeta);
  cell.measured_steps = 1;
  const Sample sample = run_cell(cell, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_THAT(sample.reason, HasSubstr("nothing was replayed"));
}

TEST(Captured, marks_the_program_and_leaves_its_ops_alone) {
  const auto workload = make_workload(Spec::parse("gpt(preset=tiny)"));
  const Program before = workload->training_forward();
  const auto apply = [&](const char* spec) {
    return apply_pass<ExecutionStrategy>(before, Spec::parse(spec));
  };
  EXPECT_EQ(captured_into(before), std::nullopt);
  EXPECT_EQ(captured_into(apply("captured")), CapturePool::shared);
  EXPECT_EQ(captured_into(apply("captured(pool=own)")), CapturePool::own);
  ASSERT_THAT(apply("captured").ops, SizeIs(before.ops.size()));
  EXPECT_THAT([&] { apply("captured(pool=mine)"); },
              ThrowsMessage<InputError>(HasSubstr("'mine'")));
}

}  // namespace
}  // namespace headroom::captured_test
