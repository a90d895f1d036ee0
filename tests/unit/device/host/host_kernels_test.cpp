// Every op kind on the host against the naive reference: new numbers and odd shapes in each run,
// poisoned outputs and workspaces, guarded buffers.
#include "harness/device/host/host_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/program/lowering/lowering.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/random_ops.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::host_kernels_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Random sizes, biased towards cases that libraries get wrong: one image, one pixel, a channel
// count that fills no block.
class Shapes {
 public:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::int64_t channels() {
    static constexpr std::array<std::int64_t, 9> known = {1, 2, 3, 10, 16, 17, 24, 32, 48};
    return known[static_cast<std::size_t>(between(0, known.size() - 1))];
  }
  Shape image() { return {between(1, 3), channels(), between(1, 13), between(1, 13)}; }
  Shape strides() { return {between(1, 3), between(1, 3)}; }
  // Padding smaller than the kernel on each side.
  Shape padding(std::int64_t kh, std::int64_t kw) {
    return {between(0, kh - 1), between(0, kw - 1), between(0, kh - 1), between(0, kw - 1)};
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_{testing::test_seed()};
};

struct Convolution {
  Shape x, w, y;
  Attributes attributes;

  explicit Convolution(Shapes& shapes) {
    x = shapes.image();
    w = {shapes.channels(), x[1], shapes.between(1, 4), shapes.between(1, 4)};
    const Shape padding = shapes.padding(w[2], w[3]);
    const Shape strides = shapes.strides();
    x[2] = std::max(x[2], w[2]);
    x[3] = std::max(x[3], w[3]);
    y = {x[0], w[0], (x[2] + padding[0] + padding[2] - w[2]) / strides[0] + 1,
         (x[3] + padding[1] + padding[3] - w[3]) / strides[1] + 1};
    attributes = {{"strides", strides}, {"padding", padding}};
  }
};

struct Pooling {
  Shape x;
  Attributes attributes;

  explicit Pooling(Shapes& shapes) {
    x = shapes.image();
    const Shape kernel = {shapes.between(1, 4), shapes.between(1, 4)};
    x[2] = std::max(x[2], kernel[0]);
    x[3] = std::max(x[3], kernel[1]);
    attributes = {{"kernel", kernel},
                  {"strides", shapes.strides()},
                  {"padding", shapes.padding(kernel[0], kernel[1])}};
  }
};

TEST(HostKernel, of_convolution_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Convolution c(shapes);
    build.emit("convolution", "op",
               {build.input("x", c.x, DType::f32), build.persistent("w", c.w, Role::weight, {})},
               c.attributes);
  });
}

TEST(HostKernel, of_convolution_backward_data_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    Convolution c(shapes);
    c.attributes["input_shape"] = c.x;
    build.emit("convolution_backward_data", "op",
               {build.input("dy", c.y, DType::f32), build.persistent("w", c.w, Role::weight, {})},
               c.attributes);
  });
}

TEST(HostKernel, of_convolution_backward_weights_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    Convolution c(shapes);
    c.attributes["weight_shape"] = c.w;
    build.emit("convolution_backward_weights", "op",
               {build.input("x", c.x, DType::f32), build.input("dy", c.y, DType::f32)},
               c.attributes);
  });
}

TEST(HostKernel, of_transposed_convolution_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Convolution c(shapes);
    const Shape& strides = std::get<Shape>(c.attributes.at("strides"));
    Shape w = c.w;
    for (std::size_t i : {2, 3}) w[i] = std::max(w[i], strides[i - 2]);  // no gaps
    build.emit("transposed_convolution", "op",
               {build.input("x", {c.y[0], w[0], c.x[2], c.x[3]}, DType::f32),
                build.persistent("w", w, Role::weight, {})},
               {{"strides", strides}, {"padding", Shape{0, 0, 0, 0}}});
  });
}

TEST(HostKernel, of_sigmoid_cross_entropy_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Attributes target = {{"target", 0.9}};
    const auto logits = build.input("logits", shapes.image(), DType::f32);
    build.emit("sigmoid_cross_entropy", "loss", {logits}, target);
    build.emit("sigmoid_cross_entropy_backward", "back", {logits}, target);
  });
}

TEST(HostKernel, of_batch_norm_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    Shape image = shapes.image();
    image[0] = 3;  // a single number per channel has no variance
    const auto x = build.input("x", image, DType::f32);
    const auto scale = build.persistent("scale", {image[1]}, Role::weight, {});
    const auto shift = build.persistent("shift", {image[1]}, Role::weight, {});
    const Attributes epsilon = {{"epsilon", 1e-2}};
    const auto y = build.emit("batch_norm", "op", {x, scale, shift}, epsilon);
    const auto dy = build.input("dy", image, DType::f32);
    build.emit("batch_norm_backward", "back", {x, dy, y[1], y[2], scale}, epsilon);
  });
}

TEST(HostKernel, of_batch_norm_inference_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Shape image = shapes.image();
    std::vector<ValueId> operands = {build.input("x", image, DType::f32)};
    for (const char* name : {"scale", "shift", "running_mean", "running_variance"})
      operands.push_back(build.persistent(name, {image[1]}, Role::statistic, {}));
    build.emit("batch_norm_inference", "op", operands, {{"epsilon", 1e-5}});
  });
}

TEST(HostKernel, of_max_pool_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Pooling p(shapes);
    const auto x = build.input("x", p.x, DType::f32);
    const auto y = build.emit("max_pool", "op", {x}, p.attributes);
    const auto dy = build.input("dy", build.program().value(y[0]).shape, DType::f32);
    Attributes attributes = p.attributes;
    attributes["input_shape"] = p.x;
    build.emit("max_pool_backward", "back", {dy, y[1]}, attributes);
  });
}

TEST(HostKernel, of_global_average_pool_and_its_backward_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Shape image = shapes.image();
    build.emit("global_average_pool", "op", {build.input("x", image, DType::f32)});
    const auto dy = build.input("dy", {image[0], image[1]}, DType::f32);
    build.emit("global_average_pool_backward", "back", {dy}, {{"input_shape", image}});
  });
}

TEST(HostKernel, of_upsample_and_sum_pool_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Shape image = shapes.image();
    const std::int64_t factor = shapes.between(1, 3);
    const Attributes attributes = {{"factor", factor}, {"scale", 0.7}};
    build.emit("upsample", "up", {build.input("x", image, DType::f32)}, attributes);
    const Shape larger = {image[0], image[1], factor * image[2], factor * image[3]};
    build.emit("sum_pool", "down", {build.input("z", larger, DType::f32)}, attributes);
  });
}

// The neighbours are convolutions, which choose channel blocks: one size for images, another for
// features.
TEST(HostKernel, of_upsample_and_sum_pool_reads_and_writes_the_layouts_of_convolutions) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Attributes same = {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}};
    const Shape image = {shapes.between(1, 2), shapes.channels(), shapes.between(1, 4),
                         shapes.between(1, 4)};
    ValueId x = build.input("x", image, DType::f32);
    const auto convolve = [&](const std::string& name) {
      const std::int64_t inputs = build.program().value(x).shape[1];
      const Shape shape = {shapes.channels(), inputs, 3, 3};
      x = build.emit_one("convolution", name,
                         {x, build.persistent(name + ".w", shape, Role::weight, {})}, same);
    };
    const Attributes twice = {{"factor", std::int64_t{2}}, {"scale", 0.5}};
    convolve("first");
    x = build.emit_one("upsample", "up", {x}, twice);
    convolve("second");
    x = build.emit_one("sum_pool", "down", {x}, twice);
    convolve("third");
  });
}

TEST(HostKernel, of_elementwise_kinds_agrees_with_the_reference_beyond_one_threads_share) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Shape shape = {shapes.between(1, 40000)};
    const auto a = build.input("a", shape, DType::f32);
    const auto b = build.input("b", shape, DType::f32);
    const auto sum = build.emit_one("add", "sum", {a, b});
    const auto y = build.emit_one("relu", "relu", {sum});
    build.emit("relu_backward", "back", {y, b});
  });
}

TEST(HostKernel, of_linear_and_its_backward_agrees_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const auto n = shapes.between(1, 9), in = shapes.between(1, 100), out = shapes.between(1, 1500);
    const auto x = build.input("x", {n, in}, DType::f32);
    const auto w = build.persistent("w", {out, in}, Role::weight, {});
    const auto b = build.persistent("b", {out}, Role::weight, {});
    build.emit("linear", "op", {x, w, b});
    const auto dy = build.input("dy", {n, out}, DType::f32);
    build.emit("linear_backward_weights", "back.weights", {x, dy});
    build.emit("linear_backward_data", "back.data", {dy, w});
  });
}

TEST(HostKernel, of_the_loss_and_the_count_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const auto n = shapes.between(1, 20);
    const auto logits = build.input("logits", {n, shapes.between(4, 30)}, DType::f32);
    const auto labels = build.input("labels", {n}, DType::s32);
    const auto loss = build.emit("softmax_cross_entropy", "loss", {logits, labels});
    build.emit("softmax_cross_entropy_backward", "back", {loss[1], labels});
    build.emit("softmax_cross_entropy_and_gradient", "both", {logits, labels});
    build.emit("count_correct", "count", {logits, labels});
  });
}

TEST(HostKernel, of_updates_agree_with_the_reference) {
  testing::judge_on_random_shapes<Shapes>([](Shapes& shapes, ProgramBuilder& build) {
    const Shape shape = {shapes.between(1, 100), shapes.between(1, 300)};
    const auto w = build.persistent("w", shape, Role::weight, {});
    const auto v = build.persistent("v", shape, Role::optimizer_state, {});
    const auto g = build.input("g", shape, DType::f32);
    build.emit("sgd_momentum", "update", {w, g, v},
               {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {w, v});
    const Shape channels = {shapes.channels()};
    const auto mean = build.persistent("running_mean", channels, Role::statistic, {});
    const auto variance = build.persistent("running_variance", channels, Role::statistic, {});
    const auto batch_mean = build.input("mean", channels, DType::f32);
    const auto batch_variance = build.input("variance", channels, DType::f32);
    build.emit("update_statistics", "statistics", {mean, variance, batch_mean, batch_variance},
               {{"momentum", 0.1}, {"count", shapes.between(2, 50)}}, {mean, variance});
  });
}

TEST(HostKernel, keep_agreeing_through_a_whole_training_step_in_blocked_layouts) {
  Shapes shapes;
  for (const std::int64_t channels : {10, 16, 33}) {
    SCOPED_TRACE(channels);
    testing::judge_on_host(testing::with_sgd(differentiate(testing::tiny_residual_net(
        shapes.between(1, 3), channels, shapes.between(6, 12), shapes.between(6, 12)))));
  }
}

TEST(HostKernel, of_the_loss_stays_finite_for_logits_that_overflow_an_exponential) {
  Program program{.name = "loss"};
  ProgramBuilder build(program);
  const auto logits = build.input("logits", {1, 2}, DType::f32);
  const auto labels = build.input("labels", {1}, DType::s32);
  const auto loss = build.emit("softmax_cross_entropy", "loss", {logits, labels});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(logits, {1000, -1000});
  host.write(labels, {1});
  host.run();
  EXPECT_EQ(host.read(loss[0]), testing::Tensor{2000});
  EXPECT_EQ(host.read(loss[1]), (testing::Tensor{1, 0}));
}

TEST(HostKernel, of_the_loss_refuses_a_label_outside_the_classes) {
  Program program{.name = "loss"};
  ProgramBuilder build(program);
  const auto logits = build.input("logits", {2, 4}, DType::f32);
  const auto labels = build.input("labels", {2}, DType::s32);
  build.emit("softmax_cross_entropy", "loss", {logits, labels});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  host.write(logits, testing::Tensor(8, 0.0));
  host.write(labels, {3, 4});
  EXPECT_THAT([&] { host.run(); },
              ThrowsMessage<InputError>(HasSubstr("label 4 of row 1 of the batch")));
}

TEST(Host, refuses_a_program_of_other_rules_and_says_which_it_computes) {
  PersistentLayouts layouts;
  const Program dense = lower(testing::tiny_residual_net(), "dense", layouts);
  EXPECT_THAT([&] { compile_for_host(dense); },
              ThrowsMessage<InputError>(HasSubstr("lowered under 'dense'")));
}

TEST(Host, reads_back_what_it_wrote_in_any_layout) {
  PersistentLayouts layouts;
  const Program lowered =
      lower(differentiate(testing::tiny_residual_net(2, 33)), "onednn", layouts);
  std::mt19937_64 random(testing::test_seed());
  testing::Tensors tensors(lowered);
  testing::fill_randomly(lowered, tensors, random, 4);
  testing::HostExecution host(lowered);
  host.write_all(tensors);
  for (ValueId id = 0; id < lowered.values.size(); ++id) {
    if (!lowered.value(id).persistent) continue;
    EXPECT_EQ(host.read(id), tensors[id]) << lowered.value(id).name;
  }
}

TEST(Host, refuses_contents_of_another_size) {
  const Value value{.name = "w", .shape = {3}, .bytes = 12};
  std::vector<std::byte> device(12), plain(8);
  EXPECT_THAT([&] { write_value(value, device.data(), plain); },
              ThrowsMessage<Error>(HasSubstr("'w' has 12 bytes in row-major order, not 8")));
}

}  // namespace
}  // namespace headroom::host_kernels_test
