#include "workloads/data/image_and_noise_batches.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "harness/base/random.h"
#include "workloads/data/image_batches.h"

namespace headroom {
namespace {

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

class ImageAndNoiseBatches final : public BatchSource {
 public:
  ImageAndNoiseBatches(std::unique_ptr<BatchSource> images, std::int64_t batch, std::uint64_t seed)
      : images_(std::move(images)), labels_(static_cast<std::size_t>(batch)), random_(seed) {}

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    const std::array<std::span<std::byte>, 2> labelled = {
        inputs[0], std::as_writable_bytes(std::span(labels_))};
    images_->next_training_batch(labelled);
    // Decoded images reach from −2 to 2.
    for (float& pixel : floats(inputs[0])) pixel = std::clamp(pixel / 2, -1.0F, 1.0F);
    for (const auto& noise : inputs.subspan(1))
      for (float& number : floats(noise)) number = static_cast<float>(normal(random_));
  }

  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}

 private:
  std::unique_ptr<BatchSource> images_;
  std::vector<std::int32_t> labels_;  // read and not used
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<BatchSource> make_image_and_noise_batches(ImageDataset dataset, std::int64_t batch,
                                                          std::int64_t image_size,
                                                          std::uint64_t seed) {
  return std::make_unique<ImageAndNoiseBatches>(
      make_image_batches(std::move(dataset),
                         {.batch = batch, .image_size = image_size, .seed = seed}),
      batch, seed);
}

}  // namespace headroom
