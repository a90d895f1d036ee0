#include "workloads/data/image_and_noise_batches.h"

#include <algorithm>
#include <array>
#include <boost/random/normal_distribution.hpp>
#include <random>
#include <utility>

#include "workloads/data/image_batches.h"

namespace headroom {
namespace {

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Scales decoded images, which range from −2 to 2, to −1 … 1.
void narrow(std::span<float> pixels) {
  for (float& pixel : pixels) pixel = std::clamp(pixel / 2, -1.0F, 1.0F);
}

void write_noise(BatchBuffers noises, std::mt19937_64& random) {
  boost::random::normal_distribution<float> normal;
  for (const auto& noise : noises)
    for (float& number : floats(noise)) number = normal(random);
}

// The buffers that a source of images with labels fills; the labels are not used.
std::array<std::span<std::byte>, 2> labelled(std::span<std::byte> images,
                                             std::span<std::int32_t> labels) {
  return {images, std::as_writable_bytes(labels)};
}

template <typename Images>
bool next_held_out(Images& images, std::span<std::byte> pixels, std::span<std::int32_t> labels) {
  if (!images.next_held_out_batch(labelled(pixels, labels))) return false;
  narrow(floats(pixels));
  return true;
}

class ImageAndNoiseBatches final : public BatchSource {
 public:
  ImageAndNoiseBatches(std::unique_ptr<BatchSource> images, std::int64_t batch, std::uint64_t seed)
      : images_(std::move(images)),
        labels_(static_cast<std::size_t>(batch)),
        held_out_labels_(static_cast<std::size_t>(batch)),
        random_(seed) {}

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    images_->next_training_batch(labelled(inputs[0], labels_));
    narrow(floats(inputs[0]));
    write_noise(inputs.subspan(1), random_);
  }

  bool next_held_out_batch(std::span<const std::span<std::byte>> inputs) override {
    return next_held_out(*images_, inputs[0], held_out_labels_);
  }
  void restart_held_out() override { images_->restart_held_out(); }

 private:
  std::unique_ptr<BatchSource> images_;
  // Buffers for unused labels; two, because held-out batches may be requested on another thread.
  std::vector<std::int32_t> labels_, held_out_labels_;
  std::mt19937_64 random_;
};

class ImageAndNoiseRecords final : public RecordSource {
 public:
  ImageAndNoiseRecords(std::unique_ptr<RecordSource> images, std::int64_t batch, std::uint64_t seed)
      : images_(std::move(images)),
        batch_(batch),
        held_out_labels_(static_cast<std::size_t>(batch)),
        random_(seed) {}

  std::int64_t count() const override { return images_->count(); }
  Bytes record_bytes() const override { return images_->record_bytes(); }
  Bytes sample_bytes() const override { return images_->sample_bytes(); }
  EpochEnd epoch_end() const override { return images_->epoch_end(); }
  std::vector<std::int64_t> next_epoch() override { return images_->next_epoch(); }
  void read(std::int64_t record, std::span<std::byte> bytes) const override {
    images_->read(record, bytes);
  }
  void decode(std::span<const std::byte> bytes, std::span<std::byte> sample) const override {
    images_->decode(bytes, sample);
  }

  std::int64_t batch_of(BatchBuffers) const override { return batch_; }
  void place(std::span<const std::byte> sample, std::int64_t slot,
             BatchBuffers inputs) const override {
    const std::size_t size = inputs[0].size() / static_cast<std::size_t>(batch_);
    const auto image = inputs[0].subspan(static_cast<std::size_t>(slot) * size, size);
    std::int32_t label = 0;
    images_->place(sample, 0, labelled(image, {&label, 1}));
    narrow(floats(image));
  }
  void complete(BatchBuffers inputs) override { write_noise(inputs.subspan(1), random_); }

  bool next_held_out_batch(BatchBuffers inputs) override {
    return next_held_out(*images_, inputs[0], held_out_labels_);
  }
  void restart_held_out() override { images_->restart_held_out(); }

 private:
  std::unique_ptr<RecordSource> images_;
  std::int64_t batch_;
  std::vector<std::int32_t> held_out_labels_;
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<RecordSource> make_image_and_noise_records(std::unique_ptr<RecordSource> images,
                                                           std::int64_t batch, std::uint64_t seed) {
  return std::make_unique<ImageAndNoiseRecords>(std::move(images), batch, seed);
}

std::unique_ptr<BatchSource> make_image_and_noise_batches(ImageDataset dataset, std::int64_t batch,
                                                          std::int64_t image_size,
                                                          std::uint64_t seed) {
  return std::make_unique<ImageAndNoiseBatches>(
      make_image_batches(std::move(dataset),
                         {.batch = batch, .image_size = image_size, .seed = seed}),
      batch, seed);
}

}  // namespace headroom
