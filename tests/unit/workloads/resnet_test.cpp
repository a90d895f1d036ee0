// ResNet as a Program: published sizes, and the same network for training and evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/step_programs.h"

namespace headroom::resnet_test {
namespace {

using testing::parameters_of;

// From torchvision's documentation of its models, which rounds to 0.1 M; the full numbers are in
// the weights' metadata ("num_params").
TEST(ResNet, has_the_published_number_of_parameters) {
  EXPECT_EQ(parameters_of("resnet(depth=18,stem=imagenet,image=224,batch=1,classes=1000)"),
            11'689'512);
  EXPECT_EQ(parameters_of("resnet(depth=34,stem=imagenet,image=224,batch=1,classes=1000)"),
            21'797'672);
  EXPECT_EQ(parameters_of("resnet(depth=50,stem=imagenet,image=224,batch=1,classes=1000)"),
            25'557'032);
  EXPECT_EQ(parameters_of("resnet(depth=101,stem=imagenet,image=224,batch=1,classes=1000)"),
            44'549'160);
  EXPECT_EQ(parameters_of("resnet(depth=152,stem=imagenet,image=224,batch=1,classes=1000)"),
            60'192'808);
}

// He et al. 2015, table 1: 3.8 × 10^9 multiply-adds for ResNet-50 at 224; torchvision counts 4.09 ×
// 10^9 for its variant. Here each is two operations, and BatchNorm and the like are added.
TEST(ResNet, does_the_published_amount_of_arithmetic) {
  const auto workload =
      make_workload(Spec::parse("resnet(depth=50,stem=imagenet,image=224,batch=1,classes=1000)"));
  EXPECT_NEAR(total_flops(workload->training_forward()), 2 * 4.09e9, 2 * 0.2e9);
}

TEST(ResNet, evaluates_on_the_values_it_trains) {
  const auto workload = make_workload(Spec::parse("resnet(depth=18,width=8,batch=2)"));
  const auto names = [](const Program& program) {
    std::set<std::string> result;
    for (const Value& value : program.values)
      if (value.persistent) result.insert(value.name);
    return result;
  };
  EXPECT_EQ(names(workload->training_forward()), names(*workload->evaluation()));
}

TEST(ResNet, scales_its_residual_branches_at_the_start_as_asked) {
  const auto scaled = [](const std::string& spec) {
    const Program program = make_workload(Spec::parse(spec))->training_forward();
    return std::ranges::count_if(program.values, [](const Value& value) {
      return value.name.ends_with(".scale") && value.initializer.parameter == 0.25;
    });
  };
  EXPECT_EQ(scaled("resnet(depth=18,residual_scale=0.25)"), 2 + 2 + 2 + 2);
  EXPECT_EQ(scaled("resnet(depth=50,residual_scale=0.25)"), 3 + 4 + 6 + 3);
  EXPECT_EQ(scaled("resnet(depth=50)"), 0);
}

TEST(ResNet, refuses_sizes_that_do_not_exist_and_says_which_do) {
  for (const char* bad :
       {"resnet(depth=20)", "resnet(stem=vgg)", "resnet(image=16)", "resnet(batch=0)",
        "resnet(labels=wrong)", "resnet(width=-1)", "resnet(classes=0)", "resnet(dpeth=18)"})
    EXPECT_THROW(make_workload(Spec::parse(bad)), InputError) << bad;
}

}  // namespace
}  // namespace headroom::resnet_test
