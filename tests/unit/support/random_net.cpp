#include "tests/unit/support/random_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace headroom::testing {
namespace {

constexpr std::int64_t kClasses = 3;
// Large, so that no normalisation divides by nearly 0 and derivatives stay moderate.
constexpr double kEpsilon = 0.1;

class Drawing {
 public:
  Drawing(std::uint64_t seed, std::int64_t batch, NetTraits traits)
      : random_(seed), batch_(batch), traits_(traits) {}

  Program draw() && {
    ValueId x = chance(2) ? images() : build_.input("x", {batch_, between(2, 5)}, DType::f32);
    const ValueId labels = build_.input("labels", {batch_}, DType::s32);
    if (traits_.across_samples) key_ = build_.input("key", {2}, DType::s32);
    made_ = {x};
    for (std::int64_t count = between(3, 9); count > 0; --count) add_vector_op();
    x = gathered();
    x = linear(x, kClasses);
    program_.loss = build_.emit("softmax_cross_entropy", "loss", {x, labels})[0];
    program_.results = {program_.loss};
    return std::move(program_);
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(std::int64_t one_in) { return between(1, one_in) == 1; }
  const Shape& shape(ValueId id) const { return program_.value(id).shape; }

  // Sometimes begins the next module.
  std::string name(const char* what) {
    if (chance(2)) ++module_;
    return fmt::format("layer.{}.{}{}", module_, what, ++ops_);
  }
  ValueId weight(Shape shape) {
    return build_.persistent(fmt::format("weight{}", program_.values.size()), std::move(shape),
                             Role::weight, {Fill::normal, 0.5});
  }

  ValueId linear(ValueId x, std::int64_t outputs) {
    const ValueId w = weight({outputs, shape(x)[1]});
    weights_.push_back(w);
    return build_.emit_one("linear", name("linear"), {x, w, weight({outputs})});
  }

  ValueId images() {
    const std::int64_t channels = between(1, 2);
    ValueId x = build_.input("x", {batch_, channels, between(2, 4), between(2, 4)}, DType::f32);
    x = convolved(x);
    for (std::int64_t count = between(1, 4); count > 0; --count) {
      const std::int64_t kind = between(1, 4);
      if (kind == 1) x = build_.emit_one("relu", name("relu"), {x});
      if (kind == 2) x = build_.emit_one("add", name("add"), {convolved(x, shape(x)[1]), x});
      if (kind == 3)
        x = build_.emit(
            "max_pool", name("pool"), {x},
            {{"kernel", Shape{2, 2}}, {"strides", Shape{1, 2}}, {"padding", Shape{1, 1, 1, 1}}})[0];
      if (kind == 4 && traits_.across_samples) x = normalised(x);
    }
    return build_.emit_one("global_average_pool", name("average"), {x});
  }

  ValueId convolved(ValueId x, std::int64_t outputs = 0) {
    if (outputs == 0) outputs = between(2, 3);
    return build_.emit_one("convolution", name("conv"), {x, weight({outputs, shape(x)[1], 3, 3})},
                           {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  }

  ValueId normalised(ValueId x) {
    const std::int64_t channels = shape(x)[1];
    const std::string norm = name("norm");
    const ValueId mean = build_.persistent(norm + ".mean", {channels}, Role::statistic, {});
    const ValueId variance =
        build_.persistent(norm + ".variance", {channels}, Role::statistic, {Fill::constant, 1});
    const auto y = build_.emit("batch_norm", norm, {x, weight({channels}), weight({channels})},
                               {{"epsilon", kEpsilon}});
    build_.emit("update_statistics", norm + ".statistics", {mean, variance, y[1], y[2]},
                {{"momentum", 0.1}, {"count", element_count(shape(x)) / channels}},
                {mean, variance});
    return y[0];
  }

  // Uses any value made so far, not only the latest.
  void add_vector_op() {
    const ValueId x = chance(3) ? any() : made_.back();
    switch (between(1, 8)) {
      case 1:
        return made(build_.emit_one("gelu", name("gelu"), {x}));
      case 2:
        return made(build_.emit_one("tanh", name("tanh"), {x}));
      case 3:
        return made(build_.emit_one("leaky_relu", name("leaky"), {x}, {{"slope", 0.2}}));
      case 4: {
        const std::int64_t width = shape(x)[1];
        return made(build_.emit("layer_norm", name("norm"), {x, weight({width}), weight({width})},
                                {{"epsilon", kEpsilon}})[0]);
      }
      case 5: {
        const ValueId other = any();
        return made(build_.emit_one("add", name("add"),
                                    {x, shape(other) == shape(x) ? other : linear_like(x)}));
      }
      case 6: {  // reuses an existing weight that fits
        const auto fits = [&](ValueId w) { return shape(w)[1] == shape(x)[1]; };
        const auto found = std::find_if(weights_.begin(), weights_.end(), fits);
        if (found == weights_.end()) return made(linear(x, between(2, 5)));
        return made(
            build_.emit_one("linear", name("shared"), {x, *found, weight({shape(*found)[0]})}));
      }
      case 7:
        if (key_ != kNoValue)
          return made(build_.emit("dropout", name("dropout"), {x, key_},
                                  {{"rate", 0.25}, {"stream", std::int64_t{ops_}}})[0]);
        [[fallthrough]];
      default:
        return made(linear(x, between(2, 5)));
    }
  }

  ValueId linear_like(ValueId x) { return linear(any(), shape(x)[1]); }
  ValueId any() { return made_[static_cast<std::size_t>(between(1, size())) - 1]; }
  std::int64_t size() const { return static_cast<std::int64_t>(made_.size()); }
  void made(ValueId id) { made_.push_back(id); }

  // Combines every unread value, so that every weight has a gradient.
  ValueId gathered() {
    std::vector<bool> read(program_.values.size());
    for (const Op& op : program_.ops)
      for (const ValueId id : op.inputs) read[id] = true;
    ValueId sum = made_.back();
    for (const ValueId id : made_)
      if (id != made_.back() && !read[id])
        sum = build_.emit_one("add", name("add"), {sum, linear(id, shape(sum)[1])});
    return sum;
  }

  std::mt19937_64 random_;
  std::int64_t batch_;
  NetTraits traits_;
  Program program_{.name = "train"};
  ProgramBuilder build_{program_};
  int module_ = 0;
  int ops_ = 0;
  ValueId key_ = kNoValue;
  std::vector<ValueId> made_, weights_;
};

// Sample n is the same whichever batch contains it.
class Samples final : public BatchSource {
 public:
  Samples(std::uint64_t seed, std::vector<Value> inputs, NetTraits traits)
      : seed_(seed), inputs_(std::move(inputs)), traits_(traits) {}

  void next_training_batch(std::span<const std::span<std::byte>> buffers) override {
    const std::int64_t batch = inputs_[0].shape[0];
    for (std::int64_t i = 0; i < batch; ++i) {
      std::mt19937_64 random(seed_ + sample_++);
      for (std::size_t n = 0; n < buffers.size(); ++n)
        if (inputs_[n].shape[0] == batch) fill(inputs_[n], row(buffers[n], i, batch), random);
    }
    std::mt19937_64 random(seed_ ^ sample_);
    for (std::size_t n = 0; n < buffers.size(); ++n)
      if (inputs_[n].shape[0] != batch) fill(inputs_[n], buffers[n], random);
  }
  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}

 private:
  static std::span<std::byte> row(std::span<std::byte> buffer, std::int64_t i, std::int64_t rows) {
    const std::size_t bytes = buffer.size() / static_cast<std::size_t>(rows);
    return buffer.subspan(static_cast<std::size_t>(i) * bytes, bytes);
  }

  void fill(const Value& value, std::span<std::byte> bytes, std::mt19937_64& random) const {
    std::normal_distribution<float> normal;
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
      const float real = normal(random);
      auto whole = static_cast<std::int32_t>(random() % kClasses);
      // One label in four always counts, because a batch without labels has no mean.
      const bool counts = sample_ % 4 == 1 || random() % 3 != 0;
      if (traits_.ignored_labels && value.name == "labels" && !counts) whole = -1;
      std::memcpy(bytes.data() + at,
                  value.dtype == DType::f32 ? static_cast<const void*>(&real) : &whole, 4);
    }
  }

  std::uint64_t seed_;
  std::vector<Value> inputs_;
  NetTraits traits_;
  std::uint64_t sample_ = 0;
};

}  // namespace

Program RandomNet::training_forward() const { return Drawing(seed_, batch_, traits_).draw(); }

std::unique_ptr<BatchSource> RandomNet::open_data(std::uint64_t seed) const {
  const Program program = training_forward();
  std::vector<Value> inputs;
  for (const ValueId id : program.inputs) inputs.push_back(program.value(id));
  return std::make_unique<Samples>(seed, std::move(inputs), traits_);
}

}  // namespace headroom::testing
