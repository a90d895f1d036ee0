#include "workloads/data/image_batches.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "harness/base/error.h"
#include "workloads/data/epoch_order.h"

namespace headroom {
namespace {

class ImageBatches : public BatchSource {
 public:
  ImageBatches(ImageDataset dataset, ImageBatchOptions options)
      : dataset_(std::move(dataset)), options_(options), order_(0, {}) {
    check_counts(dataset_.origin, dataset_.training.count(), dataset_.held_out.count(), options_);
    std::mt19937_64 random(options_.seed);
    if (options_.labels == Labels::shuffled) shuffle_labels(random);
    order_ = EpochOrder(images_of_epoch(options_, dataset_.training.count()), random);
    begin_epoch();
  }

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    const std::int64_t batch = batch_of(inputs);
    const bool unfilled = next_ + static_cast<std::size_t>(batch) > epoch_.size();
    if (options_.epoch > 0 && unfilled) begin_epoch();
    for (std::int64_t slot = 0; slot < batch; ++slot) {
      if (next_ == epoch_.size()) begin_epoch();
      copy(dataset_.training, epoch_[next_++], slot, inputs);
    }
  }

  bool next_held_out_batch(std::span<const std::span<std::byte>> inputs) override {
    const std::int64_t batch = batch_of(inputs);
    if (next_held_out_ + batch > dataset_.held_out.count()) return false;
    for (std::int64_t slot = 0; slot < batch; ++slot)
      copy(dataset_.held_out, next_held_out_++, slot, inputs);
    return true;
  }

  void restart_held_out() override { next_held_out_ = 0; }

  Reason why_not_engaged() const override {
    if (options_.labels == Labels::as_read || 2 * moved_labels_ > dataset_.training.count())
      return std::nullopt;
    return fmt::format("labels=shuffled: only {} of {} training labels changed", moved_labels_,
                       dataset_.training.count());
  }

 private:
  static std::int64_t batch_of(std::span<const std::span<std::byte>> inputs) {
    return static_cast<std::int64_t>(inputs[1].size() / sizeof(std::int32_t));
  }

  void begin_epoch() {
    epoch_ = order_.next();
    next_ = 0;
  }

  void shuffle_labels(std::mt19937_64& random) {
    const std::vector<std::uint8_t> before = dataset_.training.labels;
    shuffle(dataset_.training.labels, random);
    for (std::size_t i = 0; i < before.size(); ++i)
      moved_labels_ += before[i] != dataset_.training.labels[i] ? 1 : 0;
  }

  void copy(const ImageSet& set, std::int64_t image, std::int64_t slot,
            std::span<const std::span<std::byte>> inputs) const {
    const std::int64_t floats = 3 * options_.image_size * options_.image_size;
    auto* images = reinterpret_cast<float*>(inputs[0].data());
    decode_image(set, image, options_.image_size,
                 {images + slot * floats, static_cast<std::size_t>(floats)});
    auto* labels = reinterpret_cast<std::int32_t*>(inputs[1].data());
    labels[slot] = set.labels[static_cast<std::size_t>(image)];
  }

  ImageDataset dataset_;
  ImageBatchOptions options_;
  EpochOrder order_;
  std::span<const std::int64_t> epoch_;
  std::size_t next_ = 0;
  std::int64_t next_held_out_ = 0;
  std::int64_t moved_labels_ = 0;
};

}  // namespace

void check_counts(const std::string& origin, std::int64_t training, std::int64_t held_out,
                  const ImageBatchOptions& options) {
  for (const std::int64_t count : {training, held_out}) {
    if (count < options.batch)
      throw InputError(
          fmt::format("{}: {} images do not fill one batch of {}", origin, count, options.batch));
  }
  if (training < options.epoch)
    throw InputError(
        fmt::format("{}: has {} images, but epoch= asks for {}", origin, training, options.epoch));
}

std::int64_t images_of_epoch(const ImageBatchOptions& options, std::int64_t training) {
  return options.epoch > 0 ? options.epoch : training;
}

std::unique_ptr<BatchSource> make_image_batches(ImageDataset dataset, ImageBatchOptions options) {
  return std::make_unique<ImageBatches>(std::move(dataset), options);
}

}  // namespace headroom
