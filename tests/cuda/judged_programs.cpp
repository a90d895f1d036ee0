#include "tests/cuda/judged_programs.h"

#include <gtest/gtest.h>

#include "harness/program/lowering/lowering.h"
#include "harness/training/training_plan.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::testing {
namespace {

constexpr int kShapesPerProgram = 6;

std::vector<DType> types_of(const OneOp& one) {
  if (one.computes_in_16_bits) return {DType::f32, DType::bf16, DType::f16};
  return {DType::f32};
}

// The lowered Programs of one training step of a residual network, BERT, GPT and GANs, each at its
// smallest.
std::vector<Program> training_steps(const std::string& rules) {
  const std::pair<const char*, const char*> cells[] = {
      {"bert(batch=2,dropout=0.1,sequence=16,size=tiny,vocabulary=200)", "adam"},
      {"gpt(batch=2,context=16,dropout=0.1,sequence=16,size=tiny,vocabulary=200)", "adafactor"},
      {"gan(batch=2,latent=4,width=2)", "adam(clip_norm=1)"},
      {"gan(batch=2,image=32,latent=4,model=resnet,width=1)", "adam"},
  };
  std::vector<Program> steps;
  PersistentLayouts layouts;
  steps.push_back(lower(with_sgd(differentiate(tiny_residual_net())), rules, layouts));
  for (const auto& [workload, optimizer] : cells) {
    const Cell cell{.workload = Spec::parse(workload),
                    .device = Spec("meta"),
                    .rules = rules,
                    .allocator = Spec("bfc"),
                    .optimizer = Spec::parse(optimizer)};
    TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, rules);
    for (Program& program : plan.shapes.front().programs) steps.push_back(std::move(program));
  }
  return steps;
}

}  // namespace

void fill_for_cuda(const Program& program, Tensors& tensors, std::mt19937_64& random,
                   std::int64_t classes) {
  fill_randomly(program, tensors, random, classes);
  for (ValueId id = 0; id < program.values.size(); ++id) {
    const std::string& name = program.value(id).name;
    for (double& x : tensors[id]) {
      if (name.ends_with("count") || name.ends_with("steps"))
        x = static_cast<double>(1 + random() % 3);
      if (name == "labels" && random() % 5 == 0) x = -1;
    }
    if (name == "mask" && program.value(id).dtype == DType::s32)
      for (std::size_t row = 0; row < tensors[id].size();
           row += static_cast<std::size_t>(program.value(id).shape[1]))
        tensors[id][row] = 1;
  }
}

void judge(const std::vector<OneOp>& all, const std::string& rules,
           const HostExecution::Compile& compile) {
  std::mt19937_64 random(test_seed());
  Sizes sizes(random());
  for (const OneOp& one : all)
    for (const DType type : types_of(one))
      for (int i = 0; i < kShapesPerProgram; ++i) {
        Program program{.name = one.name};
        ProgramBuilder builder(program);
        one.build(sizes, builder, type);
        SCOPED_TRACE(one.name + " in " + std::string(to_string(type)) + ", " +
                     to_string(program.values[0].shape));
        PersistentLayouts layouts;
        HostExecution run(lower(std::move(program), rules, layouts), compile);
        run.allow_rounding_of("convolution_backward_weights");
        run.compute_on_tensor_cores();
        Tensors tensors(run.program());
        fill_for_cuda(run.program(), tensors, random, 4);
        run.write_all(tensors);
        run.run_and_judge();
        if (::testing::Test::HasFatalFailure()) return;
        run.write_all(tensors);
        run.run_in_place_too();
      }
}

void judge_training_steps(const std::string& rules, const HostExecution::Compile& compile) {
  std::mt19937_64 random(test_seed());
  for (Program& step : training_steps(rules)) {
    SCOPED_TRACE(step.name + " of " + std::to_string(step.ops.size()) + " ops");
    HostExecution run(std::move(step), compile);
    run.compute_on_tensor_cores();
    Tensors tensors(run.program());
    fill_for_cuda(run.program(), tensors, random, 2);
    // Small values, as at initialisation, because the reference does not shift exponentials and
    // would overflow.
    for (ValueId id = 0; id < run.program().values.size(); ++id)
      if (run.program().value(id).role == Role::weight)
        for (double& x : tensors[id]) x = static_cast<float>(x * 0.1);
    run.write_all(tensors);
    run.run_and_judge();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace headroom::testing
