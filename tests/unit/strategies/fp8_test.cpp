// Linear layers in 8 bits: what they keep, how far their gradients are from fp32, and how they
// combine with other axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_io.h"
#include "tests/registered_examples.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::fp8_test {
namespace {

using testing::forward_of;
using ::testing::HasSubstr;
using testing::in_precision;
using testing::lowered;
using ::testing::Optional;
using testing::Tensor;
using testing::Tensors;
using ::testing::ThrowsMessage;

// Why the host cannot compute in this type; "" if it can.
std::string missing() {
  try {
    lowered(in_precision(forward_of("bert(preset=tiny)"), "bf16"), "onednn");
  } catch (const NotSupported& error) {
    return error.what();
  }
  return "";
}

// Layers in a row whose sizes are random multiples of 16; one weight is used twice, two layers read
// the same input, and one layer does not fit 8 bits.
Program random_layers(std::mt19937_64& random) {
  const auto side = [&] { return 16 * static_cast<std::int64_t>(1 + random() % 4); };
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const std::int64_t samples = side(), inputs = side(), width = side();
  const auto weight = [&](const std::string& name, Shape shape) {
    return build.persistent(name, std::move(shape), Role::weight, {Fill::normal, 0.3});
  };
  const auto linear = [&](const std::string& name, ValueId x, ValueId w) {
    const std::int64_t outputs = program.value(w).shape[0];
    return build.emit_one("linear", name, {x, w, weight(name + ".bias", {outputs})});
  };
  const auto x = build.input("x", {samples, inputs}, DType::f32);
  const auto labels = build.input("labels", {samples}, DType::s32);
  const auto shared = weight("shared", {width, width});
  auto y = build.emit_one("gelu", "gelu", {linear("first", x, weight("first", {width, inputs}))});
  y = build.emit_one(
      "add", "sum",
      {linear("left", y, shared), linear("other", x, weight("other", {width, inputs}))});
  y = linear("right", build.emit_one("tanh", "tanh", {y}), shared);
  y = linear("last", y, weight("last", {5, width}));
  program.loss = build.emit("softmax_cross_entropy", "loss", {y, labels})[0];
  program.results = {program.loss};
  return program;
}

const char* const kBert =
    "bert(batch=4,dropout=0.1,heads=3,hidden=48,layers=1,sequence=16,size=tiny,vocabulary=70)";
const char* const kGpt =
    "gpt(batch=2,dropout=0.1,heads=3,hidden=48,layers=1,sequence=16,size=tiny,vocabulary=70)";

std::vector<Program> every_network() {
  std::mt19937_64 random(testing::test_seed());
  std::vector<Program> networks = {forward_of(kBert), forward_of(kGpt)};
  for (int i = 0; i < 3; ++i) networks.push_back(random_layers(random));
  return networks;
}

TEST(Fp8, computes_every_op_as_the_reference_does_from_the_same_rounded_operands) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  for (const Program& network : every_network()) {
    testing::judge_on_host(testing::with_sgd(in_precision(network, "fp8")), 2);
    if (HasFatalFailure()) return;
  }
}

// Fresh numbers, with weights initialised as by the network, so that it could train.
Tensors fresh_tensors(const Program& step) {
  Tensors tensors(step);
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(step, tensors, random, 2);
  for (ValueId id = 0; id < step.values.size(); ++id)
    if (const Value& value = step.value(id); value.persistent)
      for (double& x : tensors[id])
        x = value.initializer.fill == Fill::normal
                ? static_cast<float>(x * value.initializer.parameter)
                : value.initializer.parameter;
  return tensors;
}

// All weights that are quantised in `eight_bits`, one after another; `read` returns a value of
// `step`.
template <typename Read>
Tensor gradients_of(const Program& step, const Program& eight_bits, Read read) {
  Tensor all;
  for (const auto& [weight, gradient] : step.gradients) {
    const ValueId other = eight_bits.find(step.value(weight).name);
    const bool quantised =
        std::any_of(eight_bits.ops.begin(), eight_bits.ops.end(),
                    [&](const Op& op) { return op.kind == "quantise" && op.inputs[0] == other; });
    if (!quantised) continue;
    const Tensor found = read(gradient);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

double norm(const Tensor& tensor) {
  double sum = 0;
  for (const double x : tensor) sum += x * x;
  return std::sqrt(sum);
}

TEST(Fp8, gives_gradients_near_those_in_double_and_farther_off_than_bf16) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  for (const Program& network : every_network()) {
    const Program plain = in_precision(network, "fp32"), eight_bits = in_precision(network, "fp8");
    Tensors tensors = fresh_tensors(plain);
    testing::execute_reference(plain, tensors);
    const Tensor exact = gradients_of(plain, eight_bits, [&](ValueId id) { return tensors[id]; });
    const auto off_by = [&](const Program& step) {
      testing::HostExecution host(lowered(step, "onednn"));
      host.write_all(fresh_tensors(step));
      host.run();
      Tensor found = gradients_of(step, eight_bits, [&](ValueId id) { return host.read(id); });
      for (std::size_t i = 0; i < exact.size(); ++i) found[i] -= exact[i];
      return norm(found) / norm(exact);
    };
    SCOPED_TRACE(network.values.back().name + " " + std::to_string(network.values.size()));
    // Each factor is off by at most 2^-4 of its value, gradients by 2^-3, on average by a third of
    // that, and errors add up over a few layers. Gradients of other weights would be off by over 1.
    const double found = off_by(eight_bits);
    EXPECT_LT(found, 0.4);
    EXPECT_GT(found, off_by(in_precision(network, "bf16")));
  }
}

// Returns the bytes that ops of the forward pass make and ops of the backward pass read.
double kept_for_backward(const Program& step) {
  const Program dense = lowered(step, "dense");
  std::vector<bool> made(dense.values.size()), kept(dense.values.size());
  for (const Op& op : dense.ops) {
    for (const ValueId id : op.outputs) made[id] = op.phase == Phase::forward;
    if (op.phase == Phase::backward)
      for (const ValueId id : op.inputs) kept[id] = kept[id] || made[id];
  }
  double bytes = 0;
  for (ValueId id = 0; id < dense.values.size(); ++id)
    if (kept[id]) bytes += static_cast<double>(dense.value(id).bytes);
  return bytes;
}

// At s b positions, a transformer layer of width h reads 1 h for queries, keys and values, 1 h of
// attended values, and 1 h and 4 h in its two dense layers, which other layers need in no other
// form, and 12 h² weights in 6 matrices. In bf16 each number takes 2 bytes; in 8 bits it takes 1,
// and each of the 4 inputs and 6 matrices has a scale of 4 bytes.
TEST(Fp8, keeps_8_bits_and_a_scale_of_what_a_linear_layer_reads) {
  for (const std::int64_t hidden : {48, 96})
    for (const std::int64_t sequence : {16, 48}) {
      const Program forward = forward_of(
          "gpt(batch=2,dropout=0.1,heads=3,hidden=" + std::to_string(hidden) +
          ",layers=2,sequence=" + std::to_string(sequence) + ",size=tiny,vocabulary=70)");
      const auto positions = static_cast<double>(2 * sequence), h = static_cast<double>(hidden);
      const double halved = 7 * positions * h + 12 * h * h, scales = 4 * (4 + 6);
      EXPECT_EQ(kept_for_backward(in_precision(forward, "bf16")) -
                    kept_for_backward(in_precision(forward, "fp8")),
                2 * (halved - scales));
    }
}

Reason why_not(const Program& step) {
  return Registry<PrecisionStrategy>::instance().find("fp8").why_not_lowered(lowered(step, "dense"),
                                                                             Spec("fp8"));
}

TEST(Fp8, is_engaged_where_every_linear_layer_that_fits_multiplies_8_bits) {
  for (const Program& network : every_network()) {
    EXPECT_EQ(why_not(in_precision(network, "fp8")), std::nullopt);
    EXPECT_THAT(why_not(in_precision(network, "bf16")),
                Optional(HasSubstr("multiplies in bf16, not in 8 bits")));
  }
}

TEST(Fp8, takes_no_gradient_for_an_activation) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {16, 16}, DType::f8e5m2),
             w = build.input("w", {16, 16}, DType::f8e4m3);
  const auto b = build.input("b", {16}, DType::f32), scale = build.input("scale", {1}, DType::f32);
  EXPECT_THAT(
      [&] {
        build.emit_one("linear", "y", {x, w, b, scale, scale});
      },
      ThrowsMessage<Error>(HasSubstr("x must be f8e4m3 with 2 dimensions, but 'x' is f8e5m2")));
  EXPECT_THAT(
      [&] {
        build.emit_one("linear", "y", {w, w, b});
      },
      ThrowsMessage<Error>(HasSubstr("takes the scales of both factors")));
}

Cell cell_of(const std::string& workload, const std::string& device, int steps = 2) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = "onednn",
          .allocator = Spec::parse("bfc(growth=on)"),
          .precision = Spec("fp8"),
          .warmup_steps = 1,
          .measured_steps = steps - 1};
}

TEST(Fp8, is_invalid_where_no_layer_fits) {
  for (const char* workload : {"resnet(batch=4,depth=18,width=8)", "gan(batch=4,latent=8,width=4)",
                               "gpt(batch=2,heads=3,hidden=48,layers=1,sequence=11,size=tiny)"}) {
    SCOPED_TRACE(workload);
    Cell cell = cell_of(workload, "meta(capacity=1GiB)");
    cell.rules = "dense";  // runs on every processor
    const Sample sample = run_cell(cell, 7, "");
    EXPECT_EQ(sample.status, SampleStatus::invalid);
    EXPECT_THAT(sample.reason, HasSubstr("no linear layer"));
  }
}

TEST(Fp8, learns_on_a_tiny_bert) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  Cell cell = cell_of("bert(preset=tiny,vocabulary=200)", "host(capacity=1GiB)", 40);
  cell.optimizer = Spec("adam");
  const Sample sample = run_cell(cell, testing::test_seed(), "");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  const auto mean_of_ten = [&](std::ptrdiff_t from) {
    const auto begin = sample.loss.begin() + from;
    return std::accumulate(begin, begin + 10, 0.0) / 10;
  };
  EXPECT_LT(mean_of_ten(static_cast<std::ptrdiff_t>(sample.loss.size()) - 10), mean_of_ten(0));
}

template <typename Strategy>
std::string any_of(std::mt19937_64& random) {
  std::vector<std::string> examples = registered_examples<Strategy>();
  examples.emplace_back(Strategy::kNeutral);
  return examples[random() % examples.size()];
}

// Passes of other axes change no bit of the 8-bit copies, and meta counts the bytes that host
// takes.
TEST(Fp8, goes_with_random_passes_of_other_axes) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  std::mt19937_64 random(testing::test_seed());
  int judged = 0;
  for (int draw = 0; judged < 8; ++draw) {
    ASSERT_LT(draw, 80) << "nearly everything is refused";
    Cell plain = cell_of(kGpt, "host(capacity=1GiB)", 3);
    plain.optimizer = Spec("adam");
    set_axis(plain, "accumulation", random() % 2 == 0 ? "none" : "micro_batches(k=2)");
    set_axis(plain, "pruning", any_of<PruningStrategy>(random));
    Cell stacked = plain;
    set_axis(stacked, "checkpointing", any_of<CheckpointingStrategy>(random));
    set_axis(stacked, "execution", any_of<ExecutionStrategy>(random));
    SCOPED_TRACE(stacked.id());
    TemporaryDirectory directory;
    const std::string on_host = (directory.path() / "host.hrtrace").string();
    const std::string on_meta = (directory.path() / "meta.hrtrace").string();
    const Sample host = run_cell(stacked, 7, on_host);
    if (host.status != SampleStatus::ok) {
      EXPECT_THAT(host.status, ::testing::AnyOf(SampleStatus::unsupported, SampleStatus::invalid))
          << host.reason;
      continue;
    }
    ++judged;
    EXPECT_EQ(host.loss, run_cell(plain, 7, "").loss);
    stacked.device = Spec::parse("meta(capacity=1GiB)");
    ASSERT_EQ(run_cell(stacked, 7, on_meta).status, SampleStatus::ok);
    EXPECT_EQ(first_difference(read_trace(on_host), read_trace(on_meta)), "");
  }
}

TEST(Fp8, peaks_at_its_live_bytes_and_below_bf16) {
  for (const char* workload : {"bert(batch=16,size=mini)", "gpt(batch=8,sequence=64,size=tiny)"}) {
    SCOPED_TRACE(workload);
    const auto peak = [&](const char* precision) {
      Cell cell = cell_of(workload, "meta(capacity=16GiB)");
      cell.rules = "dense";
      cell.precision = Spec(precision);
      const Sample sample = run_cell(cell, 7, "");
      EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
      EXPECT_EQ(sample.ledger.requested.overall_peak, sample.lower_bound_bytes);
      return sample.lower_bound_bytes;
    };
    EXPECT_LT(peak("fp8"), peak("bf16"));
  }
}

}  // namespace
}  // namespace headroom::fp8_test
