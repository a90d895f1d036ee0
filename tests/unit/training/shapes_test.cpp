// Steps of different shapes: the odd last batch of an epoch, texts in length buckets, and
// evaluation between training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/error.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/requests.h"
#include "harness/whatif/training_requests.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/tiny_net.h"
#include "workloads/data/held_out_text.h"
#include "workloads/data/next_token_batches.h"

namespace headroom::shapes_test {
namespace {

using ::testing::ElementsAre;

Cell cell(const std::string& workload, const std::string& device, int steps) {
  return testing::small_cell(workload, {}, steps, device);
}

// Bytes of the first input that each step requests.
std::vector<Bytes> first_inputs(const std::string& workload, int steps) {
  const Cell asked = cell(workload, "meta(capacity=1GiB)", steps);
  const TrainingPlan plan = plan_training(*make_workload(asked.workload), asked, "dense");
  std::map<std::int32_t, Bytes> by_step;
  for (const Request& request : training_requests(plan, steps).requests)
    if (request.kind == Request::Kind::alloc && request.role == Role::input)
      by_step.emplace(request.step, request.bytes);
  std::vector<Bytes> result;
  for (const auto& [step, bytes] : by_step) result.push_back(bytes);
  return result;
}

constexpr Bytes kImage = 3 * 32 * 32 * 4;

TEST(OddLastBatch, ends_every_epoch_where_it_is_kept) {
  EXPECT_THAT(first_inputs("resnet(preset=tiny,batch=4,epoch=10,last_batch=keep)", 6),
              ElementsAre(4 * kImage, 4 * kImage, 2 * kImage, 4 * kImage, 4 * kImage, 2 * kImage));
}

TEST(OddLastBatch, does_not_come_where_it_is_dropped_or_the_epoch_has_none) {
  for (const char* even :
       {"resnet(preset=tiny,batch=4,epoch=10,last_batch=drop)",
        "resnet(preset=tiny,batch=4,epoch=8,last_batch=keep)", "resnet(preset=tiny,batch=4)"})
    EXPECT_THAT(first_inputs(even, 6), ::testing::Each(4 * kImage)) << even;
}

TEST(Buckets, take_their_turns_equally_often) {
  std::vector<Bytes> tokens = first_inputs("gpt(preset=tiny,lengths=bucketed,batch=1)", 16);
  std::sort(tokens.begin(), tokens.end());
  std::vector<Bytes> wanted;
  for (const Bytes length : {8, 16, 24, 32}) wanted.insert(wanted.end(), 4, 4 * length);
  EXPECT_EQ(tokens, wanted);
}

TEST(Buckets, are_told_apart_by_the_same_weights) {
  const auto workload = make_workload(Spec::parse("bert(preset=tiny,lengths=bucketed)"));
  const auto names = [](const Program& program) {
    std::map<std::string, Shape> result;
    for (const Value& value : program.values)
      if (value.persistent) result[value.name] = value.shape;
    return result;
  };
  const auto shapes = workload->training_shapes();
  ASSERT_EQ(shapes.size(), 4U);
  for (const auto& step : shapes) EXPECT_EQ(names(step.front()), names(shapes.front().front()));
}

std::vector<Bytes> ragged_tokens(std::int64_t sequence, int steps) {
  auto tokens = first_inputs(
      "gpt(preset=tiny,lengths=ragged,batch=1,sequence=" + std::to_string(sequence) + ")", steps);
  for (Bytes& bytes : tokens) bytes /= sizeof(std::int32_t);
  return tokens;
}

TEST(RaggedLengths, are_unlike_and_at_least_a_quarter_of_the_longest_which_is_one_of_them) {
  for (const std::int64_t sequence : {8, 13, 64, 200}) {
    const auto tokens = ragged_tokens(sequence, 64);
    std::map<Bytes, int> turns;
    for (const Bytes length : tokens) ++turns[length];
    EXPECT_GE(turns.begin()->first, static_cast<Bytes>(sequence / 4));
    EXPECT_EQ(turns.rbegin()->first, static_cast<Bytes>(sequence));
    const auto possible = static_cast<std::size_t>(sequence - sequence / 4 + 1);
    EXPECT_EQ(turns.size(), std::min<std::size_t>(16, possible)) << sequence;
    EXPECT_EQ(tokens, ragged_tokens(sequence, 64)) << "drawn anew";
  }
}

// A strategy that plans the memory of a step plans each of these shapes once.
TEST(RaggedLengths, are_planned_anew_for_each_length_and_not_again) {
  Cell asked = cell("gpt(preset=tiny,lengths=ragged)", "meta(capacity=1GiB)", 3 * 64);
  asked.allocator = Spec("planned");
  const Sample sample = run_cell(asked, 5, "");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  const TrainingPlan plan = plan_training(*make_workload(asked.workload), asked, "dense");
  const auto& calls = sample.ledger.device_allocations;
  std::set<std::size_t> met;
  bool planned_late = false;
  for (int step = 1; step <= 3 * 64; ++step) {
    const bool first_time = met.insert(plan.shape_of(step)).second;
    const std::uint64_t called = calls[static_cast<std::size_t>(step - 1)];
    if (first_time) {
      EXPECT_GT(called, 0U) << "step " << step;
      planned_late = planned_late || step > 16;
    } else if (step > 64) {
      EXPECT_EQ(called, 0U) << "step " << step;
    }
  }
  EXPECT_TRUE(planned_late) << "all lengths had come by then";
}

TEST(RaggedLengths, leave_the_same_bytes_on_host_and_on_meta) {
  for (const char* workload :
       {"bert(preset=tiny,sequence=48,lengths=ragged)", "gpt(preset=tiny,lengths=ragged)"}) {
    Cell host = cell(workload, "host(capacity=1GiB)", 8);
    Cell meta = cell(workload, "meta(capacity=1GiB)", 8);
    meta.rules = "onednn";
    const Sample trained = run_cell(host, 7, ""), counted = run_cell(meta, 7, "");
    ASSERT_EQ(trained.status, SampleStatus::ok) << trained.reason;
    EXPECT_EQ(trained.ledger.requested.overall_peak, counted.ledger.requested.overall_peak);
    EXPECT_EQ(trained.ledger.allocated_after_step, counted.ledger.allocated_after_step);
    for (const double loss : trained.loss) EXPECT_TRUE(std::isfinite(loss));
  }
}

TEST(EveryShape, computes_as_the_reference_does) {
  const auto gpt = make_workload(
      Spec::parse("gpt(hidden=12,heads=2,layers=1,batch=2,context=12,sequence=12,vocabulary=40,"
                  "lengths=bucketed)"));
  for (const auto& step : gpt->training_shapes()) {
    testing::judge_on_host(testing::with_sgd(differentiate(step.front())), 3);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// With evaluate_every=100, evaluation never occurs in so few steps.
TEST(Evaluation, between_steps_is_a_phase_of_the_ledger_and_changes_no_loss) {
  for (const std::string workload : {"resnet", "bert", "gpt", "gan"}) {
    const auto run = [&](const char* often, const char* device, const char* rules) {
      Cell asked = cell(workload + "(preset=tiny,evaluate_every=" + often + ")", device, 5);
      asked.rules = rules;
      return run_cell(asked, 7, "");
    };
    const Sample with = run("2", "host(capacity=1GiB)", "onednn");
    const Sample without = run("100", "host(capacity=1GiB)", "onednn");
    const Sample counted = run("2", "meta(capacity=1GiB)", "onednn");
    ASSERT_EQ(with.status, SampleStatus::ok) << with.reason;
    const auto evaluated = [](const Sample& sample) {
      return sample.ledger.phase_peaks[static_cast<std::size_t>(Phase::evaluate)].requested;
    };
    EXPECT_GT(evaluated(with), 0U) << workload;
    EXPECT_EQ(evaluated(with), evaluated(counted)) << workload;
    EXPECT_EQ(evaluated(without), 0U) << workload;
    EXPECT_EQ(with.loss, without.loss) << workload;
  }
}

TEST(Evaluation, of_texts_reads_what_training_never_does) {
  EncodedText text;
  for (int i = 0; i < 100; ++i) text.vocabulary.push_back(std::to_string(i));
  for (int i = 0; i < 1000; ++i) text.tokens.push_back(i < 900 ? 10 : 20);
  const auto source = with_held_out_text(text, 9, [](EncodedText part) {
    return make_next_token_batches(std::move(part), {.batch = 2, .sequence = 8, .seed = 3});
  });
  std::vector<std::int32_t> inputs[3];
  std::vector<std::span<std::byte>> slots;
  for (auto& input : inputs) {
    input.resize(16);
    slots.push_back(std::as_writable_bytes(std::span(input)));
  }
  for (int batch = 0; batch < 50; ++batch) {
    source->next_training_batch(slots);
    EXPECT_THAT(inputs[0], ::testing::Each(10));
    EXPECT_TRUE(source->next_held_out_batch(slots));
    EXPECT_THAT(inputs[0], ::testing::Each(20));
    EXPECT_THAT(inputs[2], ::testing::Each(20));
  }
}

TEST(Evaluation, of_texts_draws_the_same_batches_after_every_restart) {
  EncodedText text;
  for (int i = 0; i < 1000; ++i) text.tokens.push_back(i);
  const auto source = with_held_out_text(text, 9, [](EncodedText part) {
    return make_next_token_batches(std::move(part), {.batch = 2, .sequence = 8, .seed = 3});
  });
  const auto drawn = [&] {
    std::vector<std::int32_t> inputs[3];
    std::vector<std::span<std::byte>> slots;
    for (auto& input : inputs) {
      input.resize(16);
      slots.push_back(std::as_writable_bytes(std::span(input)));
    }
    source->next_held_out_batch(slots);
    return inputs[0];
  };
  source->restart_held_out();
  const auto first = drawn(), second = drawn();
  EXPECT_NE(first, second);
  source->restart_held_out();
  EXPECT_EQ(drawn(), first);
}

TEST(Shapes, are_refused_where_they_cannot_be) {
  for (const char* bad :
       {"resnet(last_batch=keep)", "resnet(last_batch=half)", "resnet(batch=32,epoch=31)",
        "resnet(evaluate_every=-1)", "bert(evaluate_every=-1)", "gpt(evaluate_every=-1)",
        "bert(lengths=rugged)", "bert(lengths=bucketed,sequence=31)",
        "bert(lengths=ragged,sequence=31)", "gpt(lengths=bucketed,sequence=7)"})
    EXPECT_THROW(make_workload(Spec::parse(bad)), InputError) << bad;
}

}  // namespace
}  // namespace headroom::shapes_test
