// GPT as a Program: published sizes, what it keeps for the backward pass, that no token sees a
// later one, and that it learns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "harness/base/error.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/kept_bytes.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::gpt_test {
namespace {

using testing::forward_of;
using testing::parameters_of;

// GPT-2's released models, as Hugging Face counts them: context 1024, tied head.
TEST(Gpt, has_the_parameters_of_the_released_models) {
  const std::string gpt2 = "context=1024,sequence=8,batch=1)";
  EXPECT_EQ(parameters_of("gpt(size=small," + gpt2), 124'439'808);
  EXPECT_EQ(parameters_of("gpt(size=medium," + gpt2), 354'823'168);
  EXPECT_EQ(parameters_of("gpt(layers=36,hidden=1280,heads=20," + gpt2), 774'030'080);
  EXPECT_EQ(parameters_of("gpt(layers=48,hidden=1600,heads=25," + gpt2), 1'557'611'200);
}

// Brown et al. 2020, table 2.1, to the digits printed there.
TEST(Gpt, has_the_parameters_of_the_papers_table) {
  const auto billions = [](const std::string& size) {
    return static_cast<double>(parameters_of("gpt(batch=1,sequence=8,size=" + size + ")")) / 1e9;
  };
  EXPECT_NEAR(billions("small"), 0.125, 0.0005);
  EXPECT_NEAR(billions("medium"), 0.356, 0.0005);
  EXPECT_NEAR(billions("large"), 0.760, 0.0005);
  EXPECT_NEAR(billions("xl"), 1.3, 0.05);
  EXPECT_NEAR(billions("2.7b"), 2.7, 0.05);
  EXPECT_NEAR(billions("6.7b"), 6.7, 0.05);
  EXPECT_NEAR(billions("13b"), 13.0, 0.2);
  EXPECT_NEAR(billions("175b"), 175, 0.5);
}

// The closed form for BERT's layers also holds for decoders, for which it was derived.
TEST(Gpt, keeps_for_the_backward_pass_what_the_closed_form_says) {
  const auto [s, b, h, a] = std::tuple(512, 2, 1024, 16);
  const Program program = differentiate(
      forward_of("gpt(layers=3,hidden=1024,heads=16,sequence=512,batch=2,vocabulary=1000)"));
  const double closed = 1.0 * s * b * h * (34 + 5.0 * a * s / h);
  EXPECT_NEAR(testing::kept_by_layer(program, "decoder.1.") / closed, 1, 0.001);
}

// Weights of the products, twice for each token, and attention's two products over all tokens.
TEST(Gpt, does_the_arithmetic_of_its_matrix_products) {
  const double h = 768, layers = 12, sequence = 128;
  const double products = layers * 12 * h * h + h * 50257;
  EXPECT_NEAR(total_flops(forward_of("gpt(size=small,batch=1,sequence=128)")),
              sequence * 2 * (products + layers * 2 * sequence * h), 1);
}

TEST(Gpt, computes_a_step_as_the_reference_does) {
  testing::judge_on_host(
      testing::with_sgd(differentiate(forward_of(
          "gpt(hidden=20,heads=2,layers=2,batch=2,context=11,sequence=9,vocabulary=50)"))),
      4);
}

TEST(Gpt, has_one_gradient_for_its_table_which_is_the_head_too) {
  const Program program = differentiate(forward_of("gpt(preset=tiny)"));
  int found = 0;
  for (const auto& [weight, gradient] : program.gradients) {
    if (program.value(weight).name != "embeddings.tokens.weight") continue;
    ++found;
    EXPECT_EQ(program.value(gradient).role, Role::gradient);
  }
  EXPECT_EQ(found, 1);
}

Sample train(const std::string& workload, int steps, std::uint64_t seed) {
  return run_cell(
      testing::small_cell(workload, {{"optimizer", "adam(learning_rate=0.003)"}}, steps), seed, "");
}

const char* const kTiny = "gpt(size=tiny,hidden=64,batch=8,context=32,sequence=32,vocabulary=150)";

TEST(Gpt, repeats_a_run_bit_by_bit_from_its_seed_dropout_included) {
  const std::vector<double> losses = train(kTiny, 4, 5).loss;
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_EQ(losses, train(kTiny, 4, 5).loss);
  EXPECT_NE(losses, train(kTiny, 4, 6).loss);
}

// The loss starts at that of guessing evenly, ln 150 = 5.01. With token frequencies alone it would
// end at their entropy, which is not as low as this for any text.
TEST(Gpt, learns_from_text_what_comes_next) {
  const std::vector<double> losses = train(kTiny, 200, 3).loss;
  EXPECT_NEAR(losses.front(), 5.01, 0.2);
  EXPECT_LT(std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20, losses.front() - 1);
}

TEST(Gpt, refuses_sizes_that_do_not_fit_and_says_which_do) {
  for (const char* bad :
       {"gpt(size=huge)", "gpt(heads=5)", "gpt(sequence=1)", "gpt(batch=0)",
        "gpt(context=16,sequence=17)", "gpt(dropout=1)", "gpt(layer=3)", "gpt(preset=medium)"})
    EXPECT_THROW(make_workload(Spec::parse(bad)), InputError) << bad;
}

}  // namespace
}  // namespace headroom::gpt_test
