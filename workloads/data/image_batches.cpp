#include "workloads/data/image_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "harness/base/error.h"

namespace headroom {
namespace {

// Fisher–Yates, the same on every standard library (std::shuffle is not).
template <typename T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

class ImageBatches : public BatchSource {
 public:
  ImageBatches(ImageDataset dataset, ImageBatchOptions options)
      : dataset_(std::move(dataset)), options_(options), random_(options.seed) {
    for (const ImageSet* set : {&dataset_.training, &dataset_.held_out}) {
      if (set->count() < options_.batch)
        throw InputError(fmt::format("{}: {} images do not fill one batch of {}", dataset_.origin,
                                     set->count(), options_.batch));
    }
    if (dataset_.training.count() < options_.epoch)
      throw InputError(fmt::format("{}: has {} images, but epoch= asks for {}", dataset_.origin,
                                   dataset_.training.count(), options_.epoch));
    if (options_.labels == Labels::shuffled) shuffle_labels();
    order_.resize(
        static_cast<std::size_t>(options_.epoch > 0 ? options_.epoch : dataset_.training.count()));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    shuffle(order_, random_);
  }

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    const std::int64_t batch = batch_of(inputs);
    const bool unfilled = next_ + static_cast<std::size_t>(batch) > order_.size();
    if (options_.epoch > 0 && unfilled) begin_epoch();
    for (std::int64_t slot = 0; slot < batch; ++slot) {
      if (next_ == order_.size()) begin_epoch();
      copy(dataset_.training, order_[next_++], slot, inputs);
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

  std::string why_not_engaged() const override {
    if (options_.labels == Labels::as_read || 2 * moved_labels_ > dataset_.training.count())
      return "";
    return fmt::format("labels=shuffled: only {} of {} training labels changed", moved_labels_,
                       dataset_.training.count());
  }

 private:
  static std::int64_t batch_of(std::span<const std::span<std::byte>> inputs) {
    return static_cast<std::int64_t>(inputs[1].size() / sizeof(std::int32_t));
  }

  void begin_epoch() {
    shuffle(order_, random_);
    next_ = 0;
  }

  void shuffle_labels() {
    const std::vector<std::uint8_t> before = dataset_.training.labels;
    shuffle(dataset_.training.labels, random_);
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
  std::mt19937_64 random_;
  std::vector<std::int64_t> order_;
  std::size_t next_ = 0;
  std::int64_t next_held_out_ = 0;
  std::int64_t moved_labels_ = 0;
};

}  // namespace

std::unique_ptr<BatchSource> make_image_batches(ImageDataset dataset, ImageBatchOptions options) {
  return std::make_unique<ImageBatches>(std::move(dataset), options);
}

}  // namespace headroom
