// The CUDA device's own kernels and its requests to cuBLAS, tested without a GPU: the same code
// runs in plain loops and is compared with the double reference. cuda_kernels_test.cpp tests what
// needs a GPU, namely library calls and launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "harness/device/cuda/module/work/divisor.h"
#include "harness/program/lowering/lowering.h"
#include "tests/cuda/judged_programs.h"
#include "tests/cuda/loop_program.h"

namespace headroom {
namespace {

using ::testing::Each;
using ::testing::Ge;
using testing::HostExecution;
using ::testing::IsNan;
using testing::Tensor;
using testing::Tensors;

HostExecution in_loops(Program program) {
  PersistentLayouts layouts;
  return HostExecution(lower(std::move(program), "dense", layouts), testing::compile_in_loops);
}

TEST(CudaWork, of_every_kind_agrees_with_the_reference_on_random_shapes) {
  testing::judge(testing::one_op_programs(), "dense", testing::compile_in_loops);
}

TEST(CudaWork, in_8_bits_agrees_with_the_reference_on_random_shapes) {
  testing::judge(testing::programs_in_8_bits(), "dense", testing::compile_in_loops);
}

TEST(CudaWork, of_whole_training_steps_agrees_with_the_reference_op_by_op) {
  testing::judge_training_steps("dense", testing::compile_in_loops);
}

TEST(CudaWork, divides_by_a_known_number_as_the_processor_does) {
  std::mt19937_64 random(testing::test_seed());
  // Numbers of every length, and their neighbours.
  const auto number = [&] {
    const auto any = static_cast<cuda::Index>(random() >> (2 + random() % 62));
    return std::clamp<cuda::Index>(any + static_cast<cuda::Index>(random() % 3) - 1, 0,
                                   std::numeric_limits<cuda::Index>::max());
  };
  for (int round = 0; round < 100'000; ++round) {
    const cuda::Index by =
        std::max<cuda::Index>(1, round < 64 ? cuda::Index{1} << (round % 63) : number());
    const cuda::Divisor divisor = by;
    const cuda::Index multiple = by * (number() % (std::numeric_limits<cuda::Index>::max() / by));
    for (const cuda::Index n : {number(), multiple, multiple + by - 1, by, cuda::Index{0},
                                std::numeric_limits<cuda::Index>::max()}) {
      ASSERT_EQ(n / divisor, n / by) << n << " / " << by;
      ASSERT_EQ(n % divisor, n % by) << n << " % " << by;
    }
  }
}

TEST(CudaWork, of_dropout_keeps_the_elements_that_the_host_keeps) {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {1, 70'001}, DType::f32);
  const auto key = build.input("key", {2}, DType::s32);
  const auto y = build.emit("dropout", "drop", {x, key}, {{"rate", 0.3}, {"stream", 7L}});
  Tensors tensors(program);
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(program, tensors, random, std::numeric_limits<std::int32_t>::max());
  HostExecution loops = in_loops(program);
  PersistentLayouts layouts;
  HostExecution host(lower(program, "onednn", layouts));
  for (HostExecution* run : {&loops, &host}) {
    run->write_all(tensors);
    run->run();
  }
  EXPECT_EQ(loops.read(y[1]), host.read(y[1]));
  EXPECT_EQ(loops.read(y[0]), host.read(y[0]));
}

// One update of `elements` weights from random states: the codes, scales and weights after it.
struct Adam8bit {
  Program program{.name = "test"};
  std::vector<ValueId> operands;

  explicit Adam8bit(std::int64_t elements, std::int64_t block) {
    ProgramBuilder build(program);
    const Shape codes = {elements}, scales = {(elements + block - 1) / block};
    operands = {build.input("w", {elements}, DType::f32),
                build.input("g", {elements}, DType::f32),
                build.input("mean.codes", codes, DType::u8),
                build.input("mean.square", scales, DType::f32),
                build.input("square.codes", codes, DType::u8),
                build.input("square.square", scales, DType::f32),
                build.input("steps", {1}, DType::f32)};
    const auto at = [&](std::size_t i) { return operands[i]; };
    build.emit("adam8bit", "update", operands,
               {{"learning_rate", 0.1},
                {"beta1", 0.9},
                {"beta2", 0.99},
                {"epsilon", 1e-3},
                {"weight_decay", 0.01},
                {"block", block}},
               {at(0), at(2), at(3), at(4), at(5)});
  }
};

// The reference does not have this kind; the host's version has a test of its own. A state halfway
// between two codes may round to either when the two compilers round differently.
TEST(CudaWork, of_adam_in_8_bits_agrees_with_the_host) {
  std::mt19937_64 random(testing::test_seed());
  for (const auto& [elements, block] : {std::pair{1000L, 256L}, {4096L, 64L}, {7L, 4096L}}) {
    const Adam8bit adam(elements, block);
    Tensors tensors(adam.program);
    testing::fill_randomly(adam.program, tensors, random, 4);
    for (const std::size_t i : {2, 4})
      for (double& code : tensors[adam.operands[i]]) code = static_cast<double>(random() % 256);
    HostExecution loops = in_loops(adam.program);
    PersistentLayouts layouts;
    HostExecution host(lower(adam.program, "onednn", layouts));
    for (HostExecution* run : {&loops, &host}) {
      run->write_all(tensors);
      run->run();
    }
    for (const std::size_t i : {0, 3, 5}) {
      const Tensor found = loops.read(adam.operands[i]), wanted = host.read(adam.operands[i]);
      for (std::size_t e = 0; e < wanted.size(); ++e)
        ASSERT_NEAR(found[e], wanted[e], 1e-5 * (1 + std::abs(wanted[e])));
    }
    for (const std::size_t i : {2, 4}) {
      const Tensor found = loops.read(adam.operands[i]), wanted = host.read(adam.operands[i]);
      std::size_t different = 0;
      for (std::size_t e = 0; e < wanted.size(); ++e) {
        ASSERT_NEAR(found[e], wanted[e], 1) << e;
        different += found[e] == wanted[e] ? 0 : 1;
      }
      EXPECT_LE(different, wanted.size() / 500);
    }
  }
}

TEST(CudaWork, of_a_label_or_a_row_that_is_not_there_gives_nan_and_reads_nothing_else) {
  Program program{.name = "test"};
  ProgramBuilder build(program);
  const auto logits = build.input("logits", {2, 3}, DType::f32);
  const auto labels = build.input("labels", {2}, DType::s32);
  const auto y = build.emit("softmax_cross_entropy", "loss", {logits, labels});
  const auto picked = build.emit_one("gather_rows", "rows", {logits, labels});
  HostExecution run = in_loops(program);
  run.write(logits, {1, 2, 3, 4, 5, 6});
  run.write(labels, {0, 1'000'000'000});
  run.run();
  EXPECT_THAT(run.read(y[0]), Each(IsNan()));
  EXPECT_THAT(run.read(y[1]), Each(Ge(0)));
  const Tensor rows = run.read(picked);
  EXPECT_EQ(Tensor(rows.begin(), rows.begin() + 3), (Tensor{1, 2, 3}));
  EXPECT_THAT(Tensor(rows.begin() + 3, rows.end()), Each(IsNan()));
}

TEST(CudaWork, of_gradients_that_overflowed_is_told_from_fine_ones) {
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1.0}) {
    Program program{.name = "test"};
    ProgramBuilder build(program);
    const auto scale = build.input("scale", {1}, DType::f32);
    const auto g = build.input("g", {1000}, DType::f32), h = build.input("h", {3}, DType::f32);
    const auto found = build.emit("check_gradients", "check", {scale, g, h});
    HostExecution run = in_loops(program);
    Tensor gradient(1000, 1.0);
    gradient[testing::test_seed() % gradient.size()] = bad;
    run.write(scale, {4});
    run.write(g, gradient);
    run.write(h, {1, 2, 3});
    run.run();
    EXPECT_EQ(run.read(found[0]), Tensor{bad == 1.0 ? 0.0 : 1.0});
    EXPECT_EQ(run.read(found[1]), Tensor{0.25});
  }
}

}  // namespace
}  // namespace headroom
