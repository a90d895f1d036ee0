// Generative adversarial networks (Goodfellow et al. 2014). Each step the discriminator learns to
// tell real images from generated ones, then the generator learns to make images that the
// discriminator takes for real: two Programs over the same weights, each of which trains one
// network and freezes the other.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/workload.h"
#include "workloads/choice.h"
#include "workloads/data/image_and_noise_batches.h"
#include "workloads/data/image_records.h"
#include "workloads/gan_model.h"

namespace headroom {
namespace {

constexpr int kAnyLabel = 256;

const GanModel& model_of(const Spec& spec) {
  static const GanModel convolutional = dcgan(), residual = resnet_gan();
  return *chosen<const GanModel*>(spec, "model", "dcgan",
                                  {{"dcgan", &convolutional}, {"resnet", &residual}});
}

GanSize read_size(const Spec& spec, const GanModel& model) {
  GanSize size = {.batch = spec.integer("batch", 64),
                  .image = spec.integer("image", model.image),
                  .width = 0,
                  .latent = spec.integer("latent", model.latent)};
  const auto published = model.widths.find(size.image);
  if (published == model.widths.end()) {
    std::string known;
    for (const auto& [image, width] : model.widths)
      known += fmt::format("{}{}", known.empty() ? "" : " or ", image);
    throw InputError(fmt::format("{}: this model has no networks for images of {}; take image={}",
                                 spec.to_string(), size.image, known));
  }
  size.width = spec.integer("width", published->second);
  require_at_least(
      spec, {{"batch", size.batch, 2}, {"width", size.width, 1}, {"latent", size.latent, 1}});
  return size;
}

class Gan final : public Workload {
 public:
  explicit Gan(const Spec& spec)
      : model_(model_of(spec)),
        size_(read_size(spec, model_)),
        data_(spec.text("data", "")),
        evaluate_every_(spec.integer("evaluate_every", 0)) {
    require_at_least(spec, {{"evaluate_every", evaluate_every_, 0}});
  }

  // The discriminator's turn.
  Program training_forward() const override {
    Program program;
    program.name = "discriminator";
    program.phase = Phase::discriminator;
    GanLayers layers(program);
    const ValueId real = images(layers);
    const ValueId generated = model_.generate(layers, size_, noise(layers, "discriminator_noise"));
    layers.freeze("generator.");  // so that its pass keeps nothing for the backward pass
    const ValueId of_real = judge(layers, "real", real, 1);
    const ValueId of_generated = judge(layers, "fake", generated, 0);
    program.loss = layers.emit("add", "loss", {of_real, of_generated});
    program.results = {program.loss};
    return program;
  }

  std::vector<Program> training_forwards() const override {
    return {training_forward(), generator_turn()};
  }

  // Evaluates the discriminator's loss on held-out real images, since there are no correct
  // predictions to count.
  std::optional<Program> evaluation() const override {
    if (evaluate_every_ == 0) return std::nullopt;
    Program program{.name = "evaluate"};
    GanLayers layers(program, Phase::evaluate);
    const ValueId logits = model_.discriminate(layers, size_, images(layers));
    program.results = {loss(layers, "score", logits, 1)};
    return program;
  }
  int evaluation_interval() const override { return static_cast<int>(evaluate_every_); }

  std::int64_t batch_size() const override { return size_.batch; }
  std::vector<std::filesystem::path> data_files() const override {
    return image_dataset_files(data_directory());
  }
  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    return make_image_and_noise_batches(read_image_dataset(data_directory(), kAnyLabel),
                                        size_.batch, size_.image, seed);
  }
  std::unique_ptr<RecordSource> open_records(std::uint64_t seed) const override {
    return make_image_and_noise_records(
        make_image_records(data_directory(), kAnyLabel,
                           {.batch = size_.batch, .image_size = size_.image, .seed = seed}),
        size_.batch, seed);
  }
  std::string why_no_records() const override { return ""; }

 private:
  Program generator_turn() const {
    Program program;
    program.name = "generator";
    program.phase = Phase::generator;
    GanLayers layers(program);
    const ValueId generated = model_.generate(layers, size_, noise(layers, "generator_noise"));
    const ValueId logits = model_.discriminate(layers, size_, generated);
    layers.freeze("discriminator.");
    program.loss = loss(layers, "loss", logits, 1);
    program.results = {program.loss};
    return program;
  }

  ValueId images(GanLayers& layers) const {
    return layers.builder().input("images", {size_.batch, 3, size_.image, size_.image}, DType::f32);
  }
  ValueId noise(GanLayers& layers, const std::string& name) const {
    return layers.builder().input(name, {size_.batch, size_.latent, 1, 1}, DType::f32);
  }
  // The discriminator's loss on `images`; `name` is "real" or "fake".
  ValueId judge(GanLayers& layers, const std::string& name, ValueId images, double target) const {
    layers.set_prefix(name + ".");
    const ValueId logits = model_.discriminate(layers, size_, images);
    layers.set_prefix("");
    return loss(layers, name + "_loss", logits, target);
  }
  static ValueId loss(GanLayers& layers, const std::string& name, ValueId logits, double target) {
    return layers.emit("sigmoid_cross_entropy", name, {logits}, {{"target", target}});
  }

  std::filesystem::path data_directory() const {
    return data_.empty() ? generated_image_directory() : std::filesystem::path(data_);
  }

  const GanModel& model_;
  GanSize size_;
  std::string data_;
  std::int64_t evaluate_every_;
};

const bool gan_is_registered = Registry<WorkloadKind>::instance().add(
    {.name = "gan",
     .summary = "Adversarial networks on images; discriminator and generator take turns in each "
                "step: model dcgan (64×64) or resnet (32×32, 128×128); preset tiny, small or paper",
     .parameters = {"batch", "data", "evaluate_every", "image", "latent", "model", "preset",
                    "width"},
     .examples = {"gan(batch=4,latent=8,width=4)", "gan(model=resnet,preset=tiny)",
                  "gan(batch=2,latent=8,model=resnet,width=2)"},
     .create = [](const Spec& spec) {
       return std::make_unique<Gan>(with_preset(spec, model_of(spec).presets));
     }});

}  // namespace
}  // namespace headroom
