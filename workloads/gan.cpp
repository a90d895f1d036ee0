// DCGAN (Radford, Metz and Chintala 2016, "Unsupervised Representation Learning with Deep
// Convolutional Generative Adversarial Networks") for images of 64×64. Each step the discriminator
// learns to tell real images from generated ones, then the generator to be taken for real: two
// Programs over the same weights, each of which trains one network and freezes the other.
#include <fmt/format.h>

#include <map>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/workload.h"
#include "workloads/choice.h"
#include "workloads/data/image_and_noise_batches.h"
#include "workloads/data/image_records.h"
#include "workloads/preset.h"

namespace headroom {
namespace {

struct Options {
  std::int64_t batch, width, latent;
};

// paper: section 4 and figure 1, where the generator begins with 1024 channels, eight times the
// width; PyTorch's example and the default begin with 512.
const Presets& presets() {
  static const Presets table = {{"tiny", {{"batch", "4"}, {"width", "4"}, {"latent", "8"}}},
                                {"small", {{"batch", "16"}, {"width", "16"}}},
                                {"paper", {{"batch", "128"}, {"width", "128"}}}};
  return table;
}

constexpr std::int64_t kImage = 64;
constexpr int kAnyLabel = 256;
constexpr double kDeviation = 0.02;  // the paper's, as are the slope and the kernels

// Both networks in one Program; a network may be run several times, on the same weights.
class Networks {
 public:
  Networks(Program& program, const Options& options) : builder_(program), options_(options) {}

  // noise [batch, latent, 1, 1] → images [batch, 3, 64, 64] in −1 … 1.
  ValueId generate(const std::string& run, ValueId noise) {
    ValueId x = noise;
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("generator.{}", i);
      x = transposed(run, name, x, options_.width << (3 - i), i == 0 ? 1 : 2, i == 0 ? 0 : 1);
      x = builder_.emit_one("relu", run + name + ".relu", {batch_norm(run, name + ".norm", x)});
    }
    x = transposed(run, "generator.4", x, 3, 2, 1);
    return builder_.emit_one("tanh", run + "generator.tanh", {x});
  }

  // images → logits [batch, 1, 1, 1], positive for real.
  ValueId discriminate(const std::string& run, ValueId images) {
    ValueId x = images;
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("discriminator.{}", i);
      x = convolution(run, name, x, options_.width << i, 2, 1);
      if (i > 0) x = batch_norm(run, name + ".norm", x);
      x = builder_.emit_one("leaky_relu", run + name + ".leaky_relu", {x}, {{"slope", 0.2}});
    }
    return convolution(run, "discriminator.4", x, 1, 1, 0);
  }

  ValueId noise(const std::string& name) {
    return builder_.input(name, {options_.batch, options_.latent, 1, 1}, DType::f32);
  }

  ValueId loss(const std::string& name, ValueId logits, double target) {
    return builder_.emit_one("sigmoid_cross_entropy", name, {logits}, {{"target", target}});
  }

  // The weights of one network are used and not trained.
  void freeze(const std::string& network) {
    for (const auto& [name, id] : persistent_)
      if (name.starts_with(network) && builder_.program().value(id).role == Role::weight)
        builder_.program().frozen.push_back(id);
  }

  ProgramBuilder& builder() { return builder_; }

 private:
  ValueId persistent(const std::string& name, Shape shape, Role role, Initializer initializer) {
    const auto found = persistent_.find(name);
    if (found != persistent_.end()) return found->second;
    return persistent_[name] = builder_.persistent(name, std::move(shape), role, initializer);
  }

  static Attributes sliding(std::int64_t stride, std::int64_t padding) {
    return {{"strides", Shape{stride, stride}},
            {"padding", Shape{padding, padding, padding, padding}}};
  }

  ValueId convolution(const std::string& run, const std::string& name, ValueId x,
                      std::int64_t outputs, std::int64_t stride, std::int64_t padding) {
    const std::int64_t inputs = builder_.program().value(x).shape[1];
    const ValueId weight = persistent(name + ".weight", {outputs, inputs, 4, 4}, Role::weight,
                                      {Fill::normal, kDeviation});
    return builder_.emit_one("convolution", run + name, {x, weight}, sliding(stride, padding));
  }

  ValueId transposed(const std::string& run, const std::string& name, ValueId x,
                     std::int64_t outputs, std::int64_t stride, std::int64_t padding) {
    const std::int64_t inputs = builder_.program().value(x).shape[1];
    const ValueId weight = persistent(name + ".weight", {inputs, outputs, 4, 4}, Role::weight,
                                      {Fill::normal, kDeviation});
    return builder_.emit_one("transposed_convolution", run + name, {x, weight},
                             sliding(stride, padding));
  }

  ValueId batch_norm(const std::string& run, const std::string& name, ValueId x) {
    const Shape shape = builder_.program().value(x).shape;
    const auto per_channel = [&](const char* suffix, Role role, double value) {
      return persistent(name + suffix, {shape[1]}, role, {Fill::constant, value});
    };
    const ValueId scale = per_channel(".scale", Role::weight, 1);
    const ValueId shift = per_channel(".shift", Role::weight, 0);
    const ValueId mean = per_channel(".running_mean", Role::statistic, 0);
    const ValueId variance = per_channel(".running_variance", Role::statistic, 1);
    const auto y = builder_.emit("batch_norm", run + name, {x, scale, shift}, {{"epsilon", 1e-5}});
    builder_.emit("update_statistics", run + name + ".statistics", {mean, variance, y[1], y[2]},
                  {{"momentum", 0.1}, {"count", shape[0] * shape[2] * shape[3]}}, {mean, variance});
    return y[0];
  }

  ProgramBuilder builder_;
  const Options& options_;
  std::map<std::string, ValueId> persistent_;
};

class Gan final : public Workload {
 public:
  explicit Gan(const Spec& spec)
      : options_{.batch = spec.integer("batch", 64),
                 .width = spec.integer("width", 64),
                 .latent = spec.integer("latent", 100)},
        data_(spec.text("data", "")) {
    require_at_least(spec, {{"batch", options_.batch, 2},
                            {"width", options_.width, 1},
                            {"latent", options_.latent, 1}});
  }

  // The discriminator's turn.
  Program training_forward() const override {
    Program program;
    program.name = "discriminator";
    program.phase = Phase::discriminator;
    Networks networks(program, options_);
    const ValueId images =
        networks.builder().input("images", {options_.batch, 3, kImage, kImage}, DType::f32);
    const ValueId generated = networks.generate("", networks.noise("discriminator_noise"));
    networks.freeze("generator.");  // so that nothing of its pass is kept
    const ValueId real = networks.loss("real_loss", networks.discriminate("real.", images), 1);
    const ValueId fake = networks.loss("fake_loss", networks.discriminate("fake.", generated), 0);
    program.loss = networks.builder().emit_one("add", "loss", {real, fake});
    program.results = {program.loss};
    return program;
  }

  std::vector<Program> training_forwards() const override {
    return {training_forward(), generator_turn()};
  }

  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return options_.batch; }
  std::vector<std::filesystem::path> data_files() const override {
    return image_dataset_files(data_directory());
  }
  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    return make_image_and_noise_batches(read_image_dataset(data_directory(), kAnyLabel),
                                        options_.batch, kImage, seed);
  }
  std::unique_ptr<RecordSource> open_records(std::uint64_t seed) const override {
    return make_image_and_noise_records(
        make_image_records(data_directory(), kAnyLabel,
                           {.batch = options_.batch, .image_size = kImage, .seed = seed}),
        options_.batch, seed);
  }
  std::string why_no_records() const override { return ""; }

 private:
  Program generator_turn() const {
    Program program;
    program.name = "generator";
    program.phase = Phase::generator;
    Networks networks(program, options_);
    const ValueId generated = networks.generate("", networks.noise("generator_noise"));
    const ValueId logits = networks.discriminate("", generated);
    networks.freeze("discriminator.");
    program.loss = networks.loss("loss", logits, 1);
    program.results = {program.loss};
    return program;
  }

  std::filesystem::path data_directory() const {
    return data_.empty() ? generated_image_directory() : std::filesystem::path(data_);
  }

  Options options_;
  std::string data_;
};

const bool registered = Registry<WorkloadKind>::instance().add(
    {.name = "gan",
     .summary = "DCGAN on 64×64 images: discriminator and generator take turns in each step; "
                "preset tiny, small or paper",
     .parameters = {"batch", "data", "latent", "preset", "width"},
     .examples = {"gan(batch=4,latent=8,width=4)"},
     .create = [](const Spec& spec) {
       return std::make_unique<Gan>(with_preset(spec, presets()));
     }});

}  // namespace
}  // namespace headroom
