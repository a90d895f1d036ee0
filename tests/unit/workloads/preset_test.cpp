// Presets: values for parameters. The user's own values take precedence.
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/workload.h"

namespace headroom::preset_test {
namespace {

class EveryFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamily, has_a_tiny_a_small_and_a_paper_preset) {
  for (const char* preset : {"tiny", "small", "paper"}) {
    const auto workload = make_workload(Spec(GetParam(), {{"preset", preset}}));
    EXPECT_FALSE(workload->training_forward().ops.empty()) << preset;
  }
}

TEST_P(EveryFamily, goes_by_the_users_own_values_before_the_presets) {
  const auto workload = make_workload(Spec(GetParam(), {{"preset", "paper"}, {"batch", "3"}}));
  EXPECT_EQ(workload->batch_size(), 3);
}

TEST_P(EveryFamily, refuses_a_preset_that_does_not_exist) {
  EXPECT_THROW(make_workload(Spec(GetParam(), {{"preset", "papers"}})), InputError);
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryFamily, ::testing::Values("resnet", "bert", "gan", "gpt"),
                         [](const auto& info) { return info.param; });

TEST(Preset, of_the_paper_is_what_the_paper_trained) {
  const Program resnet = make_workload(Spec::parse("resnet(preset=paper)"))->training_forward();
  EXPECT_EQ(resnet.value(resnet.inputs[0]).shape, (Shape{256, 3, 224, 224}));
  const Program bert = make_workload(Spec::parse("bert(preset=paper)"))->training_forward();
  EXPECT_EQ(bert.value(bert.find("mask")).shape, (Shape{256, 512}));
}

}  // namespace
}  // namespace headroom::preset_test
