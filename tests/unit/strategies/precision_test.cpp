// Mixed precision: what computes in 16 bits, what stays in f32, and how far the results differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <map>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_io.h"
#include "tests/test_name.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::precision_test {
namespace {

using testing::forward_of;
using ::testing::HasSubstr;
using testing::in_precision;
using testing::lowered;
using ::testing::Optional;
using ::testing::ThrowsMessage;

// The smallest number of classes that any input needs: a text has two segments.
constexpr std::int64_t kClasses = 2;

// Why the host cannot compute in this precision; "" if it can.
std::string missing(const char* precision) {
  try {
    lowered(in_precision(testing::tiny_residual_net(), precision), "onednn");
  } catch (const NotSupported& error) {
    return error.what();
  }
  return "";
}

Program small_bert() {
  return forward_of(
      "bert(batch=2,dropout=0.1,heads=3,hidden=48,layers=1,sequence=11,size=tiny,vocabulary=50)");
}
Program small_gpt() {
  return forward_of(
      "gpt(batch=2,dropout=0.1,heads=3,hidden=48,layers=1,sequence=11,size=tiny,vocabulary=50)");
}

// Features that the other networks lack: a transposed convolution, tanh, leaky_relu, a sum of
// losses and a weight used twice.
Program tiny_adversary() {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const Attributes sliding = {{"strides", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}};
  const Initializer random{Fill::normal, 0.3};
  const ValueId up = build.persistent("up", {5, 3, 4, 4}, Role::weight, random);
  const ValueId down = build.persistent("down", {1, 3, 4, 4}, Role::weight, random);
  const ValueId noise = build.input("noise", {3, 5, 4, 3}, DType::f32);
  const ValueId images = build.input("images", {3, 3, 8, 6}, DType::f32);
  const ValueId made = build.emit_one(
      "tanh", "made", {build.emit_one("transposed_convolution", "up.run", {noise, up}, sliding)});
  const auto loss = [&](const std::string& name, ValueId x, double target) {
    x = build.emit_one("convolution", name + ".down", {x, down}, sliding);
    x = build.emit_one("leaky_relu", name + ".leaky_relu", {x}, {{"slope", 0.2}});
    return build.emit_one("sigmoid_cross_entropy", name, {x}, {{"target", target}});
  };
  program.loss = build.emit_one("add", "loss", {loss("real", images, 1), loss("fake", made, 0)});
  program.results = {program.loss};
  return program;
}

using Between = std::function<std::int64_t(std::int64_t low, std::int64_t high)>;

// Convolutions from, to and between images of one pixel, and linear layers, of random sizes, which
// decide what kernels oneDNN takes and which parts of their blocks stay empty. tanh keeps numbers
// in the range of fp16.
Program random_products(const Between& between) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const auto weight = [&](const char* name, const Shape& shape) {
    return build.persistent(name, shape, Role::weight, {Fill::normal, 0.3});
  };
  const Attributes whole = {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}};
  const std::int64_t images = between(1, 5), in = between(1, 70), inner = between(1, 70);
  const std::int64_t out = between(1, 70), pixels = between(1, 5), classes = between(kClasses, 150);
  const ValueId code = build.input("code", {images, in, 1, 1}, DType::f32);
  const ValueId labels = build.input("labels", {images}, DType::s32);
  ValueId x = build.emit_one("transposed_convolution", "up",
                             {code, weight("up.weight", {in, inner, pixels, pixels})}, whole);
  x = build.emit_one("convolution", "down",
                     {x, weight("down.weight", {out, inner, pixels, pixels})}, whole);
  x = build.emit_one("tanh", "down.tanh", {x});
  x = build.emit_one("convolution", "pixel", {x, weight("pixel.weight", {in, out, 1, 1})}, whole);
  x = build.emit_one("tanh", "pixel.tanh", {x});
  x = build.emit_one("global_average_pool", "average", {x});
  x = build.emit_one("linear", "hidden",
                     {x, weight("hidden.weight", {out, in}), weight("hidden.bias", {out})});
  x = build.emit_one("tanh", "hidden.tanh", {x});
  x = build.emit_one("linear", "head",
                     {x, weight("head.weight", {classes, out}), weight("head.bias", {classes})});
  program.loss = build.emit("softmax_cross_entropy", "loss", {x, labels}).front();
  program.results = {program.loss};
  return program;
}

std::vector<Program> every_network() {
  std::mt19937_64 random(testing::test_seed());
  const Between between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::vector<Program> networks = {small_bert(), small_gpt(), tiny_adversary()};
  for (int i = 0; i < 4; ++i)
    networks.push_back(
        testing::tiny_residual_net(between(2, 5), between(2, 40), between(4, 12), between(4, 12)));
  for (int i = 0; i < 4; ++i) networks.push_back(random_products(between));
  return networks;
}

class SixteenBits : public ::testing::TestWithParam<const char*> {};

TEST_P(SixteenBits, computes_every_op_as_the_reference_does_from_the_same_rounded_operands) {
  if (!missing(GetParam()).empty()) GTEST_SKIP() << missing(GetParam());
  for (const Program& network : every_network()) {
    testing::judge_on_host(testing::with_sgd(in_precision(network, GetParam())), kClasses);
    if (HasFatalFailure()) return;
  }
}

double norm(const testing::Tensor& tensor) {
  double sum = 0;
  for (const double x : tensor) sum += x * x;
  return std::sqrt(sum);
}

struct Outcome {
  double loss = 0;
  std::map<std::string, testing::Tensor> gradients;
};

// Weights as the network initialises them, at a magnitude at which it would train.
Outcome computed(const Program& step, std::uint64_t seed) {
  testing::HostExecution host(lowered(step, "onednn"));
  testing::Tensors tensors(host.program());
  std::mt19937_64 random(seed);
  testing::fill_randomly(host.program(), tensors, random, kClasses);
  for (ValueId id = 0; id < step.values.size(); ++id) {
    const Value& value = step.value(id);
    if (!value.persistent) continue;
    for (double& x : tensors[id])
      x = value.initializer.fill == Fill::normal
              ? static_cast<float>(x * value.initializer.parameter)
              : value.initializer.parameter;
  }
  host.write_all(tensors);
  host.run();
  Outcome outcome{.loss = host.read(host.program().loss)[0], .gradients = {}};
  const ValueId scale = step.find("train.loss_scale");
  for (const auto& [weight, gradient] : host.program().gradients) {
    testing::Tensor& found = outcome.gradients[step.value(weight).name] = host.read(gradient);
    for (double& g : found) g /= scale == kNoValue ? 1 : tensors[scale][0];
  }
  return outcome;
}

TEST_P(SixteenBits, gives_nearly_the_loss_and_the_gradients_of_fp32) {
  if (!missing(GetParam()).empty()) GTEST_SKIP() << missing(GetParam());
  int judged = 0;
  for (const Program& network : every_network()) {
    const Outcome exact = computed(in_precision(network, "fp32"), testing::test_seed());
    const Outcome rounded = computed(in_precision(network, GetParam()), testing::test_seed());
    SCOPED_TRACE(network.values.back().name + " " + std::to_string(network.values.size()));
    ASSERT_EQ(exact.gradients.size(), rounded.gradients.size());
    testing::Tensor difference, all;
    for (const auto& [name, gradient] : exact.gradients)
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        all.push_back(gradient[i]);
        difference.push_back(rounded.gradients.at(name)[i] - gradient[i]);
      }
    // In a draw whose units are all dead the gradients are only rounding errors.
    if (norm(all) < 1e-6) continue;
    ++judged;
    // Each rounding is off by 2^-9 or 2^-12 at most; normalising a handful of numbers magnifies
    // that. Another draw of weights is off by more than 1.
    EXPECT_NEAR(rounded.loss, exact.loss, 0.05 * (1 + exact.loss));
    EXPECT_LT(norm(difference), 0.25 * norm(all));
    EXPECT_GT(norm(difference), 0) << "nothing was rounded";
  }
  EXPECT_GT(judged, 0);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SixteenBits,
                         ::testing::Values("bf16", "bf16(cast_cache=off)", "fp16(loss_scale=64)",
                                           "fp16(cast_cache=off,loss_scale=64)"),
                         [](const auto& info) { return test_name(info.param); });

// Casts of weights, by phase.
std::map<Phase, int> casts_of(const Program& step, const std::string& weight) {
  std::map<Phase, int> counts;
  for (const Op& op : step.ops)
    if (op.kind == "cast" && step.value(op.inputs[0]).name == weight) ++counts[op.phase];
  return counts;
}

TEST(MixedPrecision, casts_a_weight_once_or_before_each_op_that_reads_it) {
  using Counts = std::map<Phase, int>;
  const Program network = testing::tiny_residual_net();
  EXPECT_EQ(casts_of(in_precision(network, "bf16"), "block.weight"), (Counts{{Phase::forward, 1}}));
  EXPECT_EQ(casts_of(in_precision(network, "bf16(cast_cache=off)"), "block.weight"),
            (Counts{{Phase::forward, 1}, {Phase::backward, 1}}));
  EXPECT_EQ(casts_of(in_precision(tiny_adversary(), "bf16"), "down"),
            (Counts{{Phase::forward, 1}}));
  EXPECT_EQ(casts_of(in_precision(tiny_adversary(), "bf16(cast_cache=off)"), "down"),
            (Counts{{Phase::forward, 2}, {Phase::backward, 1}}))
      << "real images have no gradient";
}

TEST(MixedPrecision, keeps_weights_gradients_statistics_and_losses_in_f32) {
  for (const Program& network : every_network()) {
    const Program step = in_precision(network, "bf16");
    ASSERT_FALSE(step.gradients.empty());
    for (const auto& [weight, gradient] : step.gradients) {
      EXPECT_EQ(step.value(weight).dtype, DType::f32);
      EXPECT_EQ(step.value(gradient).dtype, DType::f32) << step.value(gradient).name;
    }
    for (const Value& value : step.values) {
      if (value.persistent || value.role == Role::result) {
        EXPECT_EQ(value.dtype, DType::f32) << value.name;
      }
    }
  }
}

TEST(MixedPrecision, is_engaged_where_every_product_computes_in_its_type) {
  const auto why = [](const Program& program) {
    return Registry<PrecisionStrategy>::instance().find("bf16").why_not_lowered(program,
                                                                                Spec("bf16"));
  };
  for (const Program& network : every_network()) {
    EXPECT_EQ(why(lowered(in_precision(network, "bf16"), "dense")), std::nullopt);
    EXPECT_THAT(why(lowered(in_precision(network, "fp32"), "dense")),
                Optional(HasSubstr("multiplies in f32, not in bf16")));
  }
  EXPECT_THAT(why(Program{.name = "train"}), Optional(HasSubstr("no product")));
}

TEST(MixedPrecision, lets_no_op_mix_types_without_a_cast) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId wide = build.input("wide", {2, 3}, DType::f32);
  const ValueId narrow =
      build.emit_one("cast", "narrow", {wide}, {{"to", static_cast<std::int64_t>(DType::bf16)}});
  EXPECT_THAT(
      [&] {
        build.emit_one("add", "sum", {narrow, wide});
      },
      ThrowsMessage<Error>(HasSubstr("b must be bf16 with 2 dimensions, but 'wide' is f32")));
  EXPECT_THAT(
      [&] {
        build.emit_one("cast", "again", {narrow}, {{"to", static_cast<std::int64_t>(DType::bf16)}});
      },
      ThrowsMessage<Error>(HasSubstr("'narrow' is bf16 already")));
}

Cell cell_of(const std::string& workload, const std::string& precision, const std::string& device,
             const std::string& rules) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = rules,
          .allocator = Spec::parse("bfc(growth=on)"),
          .precision = Spec::parse(precision),
          .warmup_steps = 1,
          .measured_steps = 1};
}

TEST_P(SixteenBits, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  if (!missing(GetParam()).empty()) GTEST_SKIP() << missing(GetParam());
  for (const char* workload : {"resnet(batch=4,depth=18,width=8)", "gan(batch=4,latent=8,width=4)",
                               "bert(batch=2,sequence=16,size=tiny,vocabulary=500)"}) {
    SCOPED_TRACE(workload);
    Trace traces[2];
    for (const int i : {0, 1}) {
      TemporaryDirectory directory;
      const std::string path = (directory.path() / "run.hrtrace").string();
      const char* device = i == 0 ? "host(capacity=1GiB)" : "meta(capacity=1GiB)";
      const Sample sample = run_cell(cell_of(workload, GetParam(), device, "onednn"), 7, path);
      ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
      traces[i] = read_trace(path);
    }
    ASSERT_GT(traces[0].events.size(), 100u);
    EXPECT_EQ(first_difference(traces[0], traces[1]), "");
  }
}

TEST_P(SixteenBits, peaks_at_its_live_bytes_and_below_fp32) {
  for (const char* workload :
       {"resnet(batch=32,depth=18)", "gan(batch=32,width=16)", "bert(batch=16,size=mini)"}) {
    SCOPED_TRACE(workload);
    const auto peak = [&](const std::string& precision) {
      const Sample sample =
          run_cell(cell_of(workload, precision, "meta(capacity=16GiB)", "dense"), 7, "");
      EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
      EXPECT_EQ(sample.ledger.requested.overall_peak, sample.lower_bound_bytes);
      return sample.lower_bound_bytes;
    };
    EXPECT_LT(peak(GetParam()), peak("fp32"));
  }
}

}  // namespace
}  // namespace headroom::precision_test
