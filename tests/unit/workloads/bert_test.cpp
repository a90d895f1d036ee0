// BERT as a Program: published sizes, what it keeps for the backward pass, and that it learns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "harness/base/error.h"
#include "harness/program/lowering/lowering.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/kept_bytes.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::bert_test {
namespace {

using testing::parameters_of;

// base: the encoder and head that Hugging Face's BertForMaskedLM counts, 109.5 million with tied
// embeddings. large: the paper's 340 million is 335 without the pooler and rounding. tiny and mini:
// 4.4 and 11.2 million (Turc et al. 2019), which include the pooler.
TEST(Bert, has_the_published_number_of_parameters) {
  EXPECT_EQ(parameters_of("bert(size=base,batch=1)"), 109'514'298);
  EXPECT_NEAR(parameters_of("bert(size=large,batch=1)"), 335e6, 0.5e6);
  EXPECT_NEAR(parameters_of("bert(size=mini,batch=1)"), 11.2e6, 0.1e6);
  EXPECT_NEAR(parameters_of("bert(size=tiny,batch=1)"), 4.4e6, 0.1e6);
}

// Twice the weights of the encoder's products for each token, plus the two products of attention.
TEST(Bert, does_the_arithmetic_of_its_matrix_products) {
  const auto workload =
      make_workload(Spec::parse("bert(size=base,batch=1,sequence=128,head=full)"));
  const double products = 12.0 * 12 * 768 * 768 + 768.0 * 768 + 768.0 * 30522;
  const double attention = 12.0 * 2 * 128 * 768;
  EXPECT_NEAR(total_flops(workload->training_forward()), 128 * 2 * (products + attention), 1);
}

// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
// equation 2: s b h (34 + 5 a s / h) bytes. The equation counts the input of a layer and not its
// output; here it is the reverse, which makes no difference in the middle of a stack. The mean and
// deviation of each row of the two normalisations add 0.04 % at hidden 512.
TEST(Bert, keeps_for_the_backward_pass_what_the_closed_form_says) {
  for (const auto& [s, b, h, a] :
       {std::tuple(128, 4, 768, 12), std::tuple(512, 2, 1024, 16), std::tuple(384, 3, 512, 4)}) {
    const auto workload = make_workload(Spec("bert", {{"size", "base"},
                                                      {"layers", "3"},
                                                      {"sequence", std::to_string(s)},
                                                      {"batch", std::to_string(b)},
                                                      {"hidden", std::to_string(h)},
                                                      {"heads", std::to_string(a)}}));
    const Program program = differentiate(workload->training_forward());
    const double closed = 1.0 * s * b * h * (34 + 5.0 * a * s / h);
    EXPECT_NEAR(testing::kept_by_layer(program, "encoder.1.") / closed, 1, 0.001);
  }
}

// Checks every op of a step in the layouts that it has within the step. There are two segments.
TEST(Bert, computes_a_step_as_the_reference_does) {
  for (const char* head : {"gathered", "full"}) {
    SCOPED_TRACE(head);
    const auto workload = make_workload(Spec("bert", {{"size", "tiny"},
                                                      {"batch", "2"},
                                                      {"sequence", "9"},
                                                      {"hidden", "20"},
                                                      {"layers", "1"},
                                                      {"vocabulary", "50"},
                                                      {"head", head}}));
    testing::judge_on_host(testing::with_sgd(differentiate(workload->training_forward())), 2);
  }
}

TEST(Bert, refuses_sizes_that_do_not_fit_and_says_which_do) {
  for (const char* bad :
       {"bert(size=huge)", "bert(heads=5)", "bert(sequence=7)", "bert(batch=0)", "bert(dropout=1)",
        "bert(head=none)", "bert(labels=wrong)", "bert(vocabulary=4)", "bert(layer=3)"})
    EXPECT_THROW(make_workload(Spec::parse(bad)), InputError) << bad;
}

Sample train(const std::string& workload, int steps, std::uint64_t seed) {
  return run_cell(
      testing::small_cell(workload, {{"optimizer", "adam(learning_rate=0.003)"}}, steps), seed, "");
}

TEST(Bert, repeats_a_run_bit_by_bit_from_its_seed_dropout_included) {
  const std::string tiny = "bert(size=tiny,hidden=64,batch=4,sequence=32,vocabulary=150)";
  const std::vector<double> losses = train(tiny, 4, 5).loss;
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_EQ(losses, train(tiny, 4, 5).loss);
  EXPECT_NE(losses, train(tiny, 4, 6).loss);
}

double mean_of_last(const Sample& sample, std::size_t count) {
  const auto& losses = sample.loss;
  return std::accumulate(losses.end() - static_cast<std::ptrdiff_t>(count), losses.end(), 0.0) /
         static_cast<double>(count);
}

// With permuted targets, only the frequencies of tokens can be learnt.
TEST(Bert, learns_more_from_text_than_shuffled_targets_can_teach) {
  const std::string tiny = "bert(size=tiny,hidden=64,batch=16,dropout=0,sequence=32,vocabulary=150";
  const Sample real = train(tiny + ")", 300, 3);
  const Sample control = train(tiny + ",labels=shuffled)", 300, 3);
  EXPECT_LT(mean_of_last(real, 30), real.loss.front() - 0.5);
  EXPECT_LT(mean_of_last(real, 30), mean_of_last(control, 30) - 0.1);
}

// The rows that a gathered head picks equal those that a full head scores.
TEST(Bert, has_the_same_losses_whether_its_head_reads_the_guessed_tokens_or_all) {
  const std::string tiny = "bert(size=tiny,hidden=32,batch=3,dropout=0,sequence=24,vocabulary=150";
  const std::vector<double> gathered = train(tiny + ",head=gathered)", 3, 9).loss;
  const std::vector<double> full = train(tiny + ",head=full)", 3, 9).loss;
  ASSERT_EQ(full.size(), gathered.size());
  for (std::size_t i = 0; i < full.size(); ++i) EXPECT_NEAR(full[i], gathered[i], 1e-4) << i;
}

}  // namespace
}  // namespace headroom::bert_test
