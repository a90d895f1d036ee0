// The op kinds that only transformers use, on the host against the naive reference: new numbers and
// odd shapes in each run, poisoned outputs, guarded buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/program/lowering/lowering.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/random_ops.h"

namespace headroom::text_kernels_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Sizes {
 public:
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

 private:
  std::mt19937_64 random_{testing::test_seed()};
};

TEST(HostKernel, of_gather_rows_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape table = {sizes(4, 300), sizes(1, 200)};
    const auto x = build.persistent("x", table, Role::weight, {});
    const auto rows = build.input("rows", {sizes(1, 400)}, DType::s32);
    const auto y = build.emit_one("gather_rows", "op", {x, rows});
    const auto dy = build.input("dy", build.program().value(y).shape, DType::f32);
    build.emit("gather_rows_backward", "back", {rows, dy}, {{"input_shape", table}});
    const auto other = build.input("other", table, DType::f32);
    build.emit("gather_rows_backward_add", "back.add", {rows, dy, other}, {{"input_shape", table}});
  });
}

TEST(HostKernel, of_layer_norm_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape shape = {sizes(1, 90), sizes(2, 400)};
    const auto x = build.input("x", shape, DType::f32);
    const auto scale = build.persistent("scale", {shape[1]}, Role::weight, {});
    const auto shift = build.persistent("shift", {shape[1]}, Role::weight, {});
    const auto y = build.emit("layer_norm", "op", {x, scale, shift}, {{"epsilon", 1e-2}});
    const auto dy = build.input("dy", shape, DType::f32);
    build.emit("layer_norm_backward", "back", {x, dy, y[1], y[2], scale});
  });
}

TEST(HostKernel, of_smooth_activations_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape shape = {sizes(1, 60), sizes(1, 600)};
    const auto x = build.input("x", shape, DType::f32);
    const auto dy = build.input("dy", shape, DType::f32);
    build.emit_one("gelu", "gelu", {x});
    build.emit("gelu_backward", "gelu.back", {x, dy});
    const auto y = build.emit_one("tanh", "tanh", {x});
    build.emit("tanh_backward", "tanh.back", {y, dy});
    const auto z = build.emit_one("leaky_relu", "leaky", {x}, {{"slope", 0.2}});
    build.emit("leaky_relu_backward", "leaky.back", {z, dy}, {{"slope", 0.2}});
  });
}

TEST(HostKernel, of_masked_softmax_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape shape = {sizes(1, 4), sizes(1, 4), sizes(1, 40), sizes(1, 70)};
    const Attributes scale = {{"scale", 0.125}};
    const auto x = build.input("x", shape, DType::f32);
    const auto mask = build.input("mask", {shape[0], shape[3]}, DType::s32);
    const auto y = build.emit_one("masked_softmax", "op", {x, mask}, scale);
    const auto dy = build.input("dy", shape, DType::f32);
    build.emit("masked_softmax_backward", "back", {y, dy}, scale);
  });
}

TEST(HostKernel, of_causal_softmax_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const std::int64_t tokens = sizes(1, 70);
    const auto x = build.input("x", {sizes(1, 4), sizes(1, 4), tokens, tokens}, DType::f32);
    build.emit_one("causal_softmax", "op", {x}, {{"scale", 0.125}});
  });
}

TEST(HostKernel, of_causal_softmax_lets_no_token_see_a_later_one) {
  Program program{.name = "softmax"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {1, 1, 3, 3}, DType::f32);
  const auto y = build.emit_one("causal_softmax", "op", {x}, {{"scale", 1.0}});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(x, {5, 2000, 3000, -7, -7, 3000, -1000, 0, -1000});
  host.run();
  EXPECT_EQ(host.read(y), (testing::Tensor{1, 0, 0, 0.5, 0.5, 0, 0, 1, 0}));
}

TEST(HostKernel, of_masked_softmax_stays_finite_and_leaves_no_weight_on_padding) {
  Program program{.name = "softmax"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {2, 1, 1, 3}, DType::f32);
  const auto mask = build.input("mask", {2, 3}, DType::s32);
  const auto y = build.emit_one("masked_softmax", "op", {x, mask}, {{"scale", 1.0}});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(x, {-2000, 1000, 3000, 1, 2, 3});
  host.write(mask, {1, 1, 0, 0, 0, 0});
  host.run();
  EXPECT_EQ(host.read(y), (testing::Tensor{0, 1, 0, 0, 0, 0}));
}

TEST(HostKernel, of_dropout_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape shape = {sizes(1, 50000)};
    const Attributes rate = {{"rate", 0.1}};
    const auto x = build.input("x", shape, DType::f32);
    const auto key = build.input("key", {2}, DType::s32);
    const auto y =
        build.emit("dropout", "op", {x, key}, {{"rate", 0.1}, {"stream", sizes(0, 1000)}});
    const auto dy = build.input("dy", shape, DType::f32);
    build.emit("dropout_backward", "back", {dy, y[1]}, rate);
  });
}

// Published test vectors of the generator: Random123, kat_vectors.
TEST(Reference, of_dropout_draws_the_published_random_numbers) {
  EXPECT_EQ(testing::philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(testing::philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(HostKernel, of_every_batched_matmul_agrees_with_the_reference) {
  Sizes sizes;
  for (std::int64_t mode = 0; mode < 32; ++mode) {
    SCOPED_TRACE(mode);
    const auto bit = [&](int i) { return mode >> i & 1; };
    const std::int64_t samples = sizes(1, 3), heads = sizes(1, 3);
    const auto stored = [&](std::int64_t rows, std::int64_t columns, std::int64_t transposed,
                            std::int64_t merged) -> Shape {
      if (transposed != 0) std::swap(rows, columns);
      if (merged != 0) return {samples * rows, heads * columns};
      return {samples, heads, rows, columns};
    };
    const std::int64_t rows = sizes(1, 40), inner = sizes(1, 40), columns = sizes(1, 40);
    Program program{.name = "product"};
    ProgramBuilder build(program);
    const auto a = build.input("a", stored(rows, inner, bit(0), bit(2)), DType::f32);
    const auto b = build.input("b", stored(inner, columns, bit(1), bit(3)), DType::f32);
    build.emit("batched_matmul", "op", {a, b},
               {{"batch", Shape{samples, heads}},
                {"transposed", Shape{bit(0), bit(1)}},
                {"merged", Shape{bit(2), bit(3), bit(4)}}});
    testing::judge_on_host(program);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(HostKernel, of_adam_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Sizes>([](Sizes& sizes, ProgramBuilder& build) {
    const Shape shape = {sizes(1, 100), sizes(1, 300)};
    const auto w = build.persistent("w", shape, Role::weight, {});
    const auto m = build.persistent("mean", shape, Role::optimizer_state, {});
    const auto s = build.persistent("square", shape, Role::optimizer_state, {});
    const auto steps = build.persistent("steps", {1}, Role::optimizer_state, {});
    const auto g = build.input("g", shape, DType::f32);
    build.emit("count_step", "count", {steps}, {}, {steps});
    build.emit("adam", "update", {w, g, m, s, steps},
               {{"learning_rate", 0.1},
                {"beta1", 0.9},
                {"beta2", 0.999},
                {"epsilon", 1e-3},
                {"weight_decay", 0.01}},
               {w, m, s});
  });
}

TEST(HostKernel, of_gradient_sums_agrees_with_the_reference) {
  for (const std::int64_t start : {0, 1})
    testing::judge_on_random_shapes<Sizes>([start](Sizes& sizes, ProgramBuilder& build) {
      const Shape shape = {sizes(1, 100), sizes(1, 300)};
      const auto sum = build.persistent("sum", shape, Role::gradient, {});
      const auto g = build.input("g", shape, DType::f32);
      build.emit("accumulate", "sum.add", {sum, g}, {{"scale", 0.25}, {"start", start}}, {sum});
      const auto labels = build.input("labels", {sizes(1, 50)}, DType::s32);
      const auto count = build.emit_one("count_labels", "count", {labels});
      build.emit("accumulate", "sum.weighted", {sum, g, count}, {{"scale", 1.0}, {"start", start}},
                 {sum});
      build.emit("divide", "sum.divide", {sum, count}, {}, {sum});
    });
}

TEST(HostKernel, of_a_mean_over_no_label_at_all_leaves_the_sum) {
  Program program{.name = "mean"};
  ProgramBuilder build(program);
  const auto sum = build.persistent("sum", {3}, Role::gradient, {Fill::constant, 0});
  const auto labels = build.input("labels", {2}, DType::s32);
  const auto count = build.emit_one("count_labels", "count", {labels});
  build.emit("divide", "sum.divide", {sum, count}, {}, {sum});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(sum, {0, 0, 0});
  host.write(labels, {-1, -1});
  host.run();
  EXPECT_EQ(host.read(sum), (testing::Tensor{0, 0, 0}));
}

TEST(HostKernel, of_the_loss_leaves_out_rows_without_a_label) {
  Program program{.name = "loss"};
  ProgramBuilder build(program);
  const auto logits = build.input("logits", {3, 2}, DType::f32);
  const auto labels = build.input("labels", {3}, DType::s32);
  const auto loss = build.emit("softmax_cross_entropy", "loss", {logits, labels});
  const auto gradient = build.emit_one("softmax_cross_entropy_backward", "back", {loss[1], labels});
  const auto both = build.emit("softmax_cross_entropy_and_gradient", "both", {logits, labels});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(logits, {0, 0, 5, -5, 0, 0});
  host.write(labels, {1, -1, 0});
  host.run();
  EXPECT_FLOAT_EQ(static_cast<float>(host.read(loss[0])[0]), std::log(2.0F));
  EXPECT_EQ(host.read(loss[1]), (testing::Tensor{0.5, 0.5, 0, 0, 0.5, 0.5}));
  EXPECT_EQ(host.read(gradient), (testing::Tensor{0.25, -0.25, 0, 0, -0.25, 0.25}));
  EXPECT_EQ(host.read(both[0]), host.read(loss[0]));
  EXPECT_EQ(host.read(both[1]), host.read(gradient));
}

TEST(HostKernel, of_gather_rows_refuses_a_row_that_is_not_there) {
  Program program{.name = "gather"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {4, 2}, DType::f32);
  const auto rows = build.input("rows", {2}, DType::s32);
  build.emit("gather_rows", "op", {x, rows});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(x, testing::Tensor(8, 0.0));
  host.write(rows, {3, 4});
  EXPECT_THAT([&] { host.run(); },
              ThrowsMessage<InputError>(HasSubstr("row 4 of 1 was requested")));
}

}  // namespace
}  // namespace headroom::text_kernels_test
