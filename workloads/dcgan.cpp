// DCGAN (Radford, Metz and Chintala 2016, "Unsupervised Representation Learning with Deep
// Convolutional Generative Adversarial Networks") for images of 64×64.
#include <fmt/format.h>

#include "workloads/gan_model.h"

namespace headroom {
namespace {

constexpr double kDeviation = 0.02;  // the paper's, as are the slope and the kernels

ValueId generate(GanLayers& layers, const GanSize& size, ValueId noise) {
  ValueId x = noise;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("generator.{}", i);
    const Window window = {.size = 4, .stride = i == 0 ? 1 : 2, .padding = i == 0 ? 0 : 1};
    x = layers.transposed_convolution(name, x, size.width << (3 - i), window, kDeviation);
    x = layers.relu(name + ".relu", layers.batch_norm(name + ".norm", x));
  }
  x = layers.transposed_convolution("generator.4", x, 3, {.size = 4, .stride = 2, .padding = 1},
                                    kDeviation);
  return layers.emit("tanh", "generator.tanh", {x});
}

ValueId discriminate(GanLayers& layers, const GanSize& size, ValueId images) {
  ValueId x = images;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("discriminator.{}", i);
    x = layers.convolution(name, x, size.width << i, {.size = 4, .stride = 2, .padding = 1},
                           kDeviation);
    if (i > 0) x = layers.batch_norm(name + ".norm", x);
    x = layers.emit("leaky_relu", name + ".leaky_relu", {x}, {{"slope", 0.2}});
  }
  return layers.convolution("discriminator.4", x, 1, {.size = 4}, kDeviation);
}

}  // namespace

// paper: section 4 and figure 1, where the generator begins with 1024 channels, eight times the
// width; PyTorch's example and the default begin with 512.
GanModel dcgan() {
  return {.widths = {{64, 64}},
          .image = 64,
          .latent = 100,
          .presets = {{"tiny", {{"batch", "4"}, {"width", "4"}, {"latent", "8"}}},
                      {"small", {{"batch", "16"}, {"width", "16"}}},
                      {"paper", {{"batch", "128"}, {"width", "128"}}}},
          .generate = generate,
          .discriminate = discriminate};
}

}  // namespace headroom
