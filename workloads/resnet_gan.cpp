// Residual generator and discriminator of Miyato et al. 2018, "Spectral Normalization for
// Generative Adversarial Networks": table 3 for images of 32×32 (CIFAR-10), table 5 for 128×128
// (ImageNet), blocks as in their published code: the generator's blocks double the image's side
// after the first relu, the discriminator's halve it at their end, and both have a 1×1 convolution
// as shortcut where sizes change. Left out: spectral normalisation, which takes memory of the
// weights' size but none of the activations', and without which the first losses are in the tens;
// biases of convolutions, five updates of the discriminator for one of the generator, and classes
// as a condition.
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "workloads/gan_model.h"

namespace headroom {
namespace {

// Channels in units of the width.
struct Plan {
  std::vector<std::int64_t> generator;      // for the first 4×4 images, then after each block
  std::vector<std::int64_t> discriminator;  // after each block
  std::size_t halvings;                     // number of first blocks that halve the side
};

const Plan& plan_of(std::int64_t image) {
  static const Plan cifar = {{2, 2, 2, 2}, {1, 1, 1, 1}, 2};
  static const Plan imagenet = {{16, 16, 8, 4, 2, 1}, {1, 2, 4, 8, 16, 16}, 5};
  return image == 32 ? cifar : imagenet;
}

// A convolution initialised after Glorot and Bengio 2010, times `gain`: √2 within blocks except in
// their shortcuts.
ValueId convolution(GanLayers& layers, const std::string& name, ValueId x, std::int64_t outputs,
                    std::int64_t kernel, double gain) {
  const auto fans = static_cast<double>((layers.shape(x)[1] + outputs) * kernel * kernel);
  return layers.convolution(name, x, outputs, {.size = kernel, .padding = kernel / 2},
                            gain * std::sqrt(2 / fans));
}

ValueId generator_block(GanLayers& layers, const std::string& name, ValueId x,
                        std::int64_t channels) {
  ValueId y = layers.relu(name + ".relu1", layers.batch_norm(name + ".norm1", x));
  y = convolution(layers, name + ".conv1", layers.upsample(name + ".upsample", y, 2), channels, 3,
                  std::numbers::sqrt2);
  y = layers.relu(name + ".relu2", layers.batch_norm(name + ".norm2", y));
  y = convolution(layers, name + ".conv2", y, channels, 3, std::numbers::sqrt2);
  const ValueId shortcut =
      convolution(layers, name + ".shortcut", layers.upsample(name + ".shortcut.upsample", x, 2),
                  channels, 1, 1);
  return layers.emit("add", name + ".add", {y, shortcut});
}

ValueId generate_by_blocks(GanLayers& layers, const GanSize& size, ValueId noise) {
  const Plan& plan = plan_of(size.image);
  const std::int64_t first = plan.generator[0] * size.width;
  // A linear layer: every pixel has its own weights.
  ValueId x =
      layers.transposed_convolution("generator.0", noise, first, {.size = 4},
                                    std::sqrt(2 / static_cast<double>(size.latent + 16 * first)));
  for (std::size_t i = 1; i < plan.generator.size(); ++i)
    x = generator_block(layers, fmt::format("generator.{}", i), x, plan.generator[i] * size.width);
  const std::string last = fmt::format("generator.{}", plan.generator.size());
  x = layers.relu(last + ".relu", layers.batch_norm(last + ".norm", x));
  return layers.emit("tanh", last + ".tanh", {convolution(layers, last, x, 3, 3, 1)});
}

ValueId halve(GanLayers& layers, const std::string& name, ValueId x) {
  return layers.sum_pool(name + ".halve", x, 2, 0.25);
}

// This block reads images: it begins without relu, and its shortcut halves them first because they
// have few channels.
ValueId first_discriminator_block(GanLayers& layers, const std::string& name, ValueId images,
                                  std::int64_t channels) {
  ValueId y = convolution(layers, name + ".conv1", images, channels, 3, std::numbers::sqrt2);
  y = convolution(layers, name + ".conv2", layers.relu(name + ".relu", y), channels, 3,
                  std::numbers::sqrt2);
  const ValueId shortcut = convolution(layers, name + ".shortcut",
                                       halve(layers, name + ".shortcut", images), channels, 1, 1);
  return layers.emit("add", name + ".add", {halve(layers, name, y), shortcut});
}

enum class Side : std::uint8_t { kept, halved };

ValueId discriminator_block(GanLayers& layers, const std::string& name, ValueId x,
                            std::int64_t channels, Side side) {
  const std::int64_t inner = layers.shape(x)[1];
  ValueId y = convolution(layers, name + ".conv1", layers.relu(name + ".relu1", x), inner, 3,
                          std::numbers::sqrt2);
  y = convolution(layers, name + ".conv2", layers.relu(name + ".relu2", y), channels, 3,
                  std::numbers::sqrt2);
  ValueId shortcut = x;
  if (side == Side::halved || inner != channels)
    shortcut = convolution(layers, name + ".shortcut", shortcut, channels, 1, 1);
  if (side == Side::halved) {
    y = halve(layers, name, y);
    shortcut = halve(layers, name + ".shortcut", shortcut);
  }
  return layers.emit("add", name + ".add", {y, shortcut});
}

ValueId discriminate_by_blocks(GanLayers& layers, const GanSize& size, ValueId images) {
  const Plan& plan = plan_of(size.image);
  ValueId x = first_discriminator_block(layers, "discriminator.0", images,
                                        plan.discriminator[0] * size.width);
  for (std::size_t i = 1; i < plan.discriminator.size(); ++i)
    x = discriminator_block(layers, fmt::format("discriminator.{}", i), x,
                            plan.discriminator[i] * size.width,
                            i < plan.halvings ? Side::halved : Side::kept);
  const std::string last = fmt::format("discriminator.{}", plan.discriminator.size());
  x = layers.relu(last + ".relu", x);
  x = layers.sum_pool(last + ".sum", x, layers.shape(x)[2], 1);
  return convolution(layers, last, x, 1, 1, 1);
}

}  // namespace

GanModel resnet_gan() {
  return {.widths = {{32, 128}, {128, 64}},
          .image = 128,
          .latent = 128,
          .presets = {{"tiny", {{"image", "32"}, {"batch", "4"}, {"width", "4"}, {"latent", "8"}}},
                      {"small", {{"image", "32"}, {"batch", "16"}, {"width", "32"}}},
                      {"paper", {{"image", "128"}, {"batch", "64"}}}},
          .generate = generate_by_blocks,
          .discriminate = discriminate_by_blocks};
}

}  // namespace headroom
