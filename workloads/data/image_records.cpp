#include "workloads/data/image_records.h"

#include <cstring>
#include <utility>

#include "workloads/data/epoch_order.h"

namespace headroom {
namespace {

class ImageRecords final : public RecordSource {
 public:
  ImageRecords(const std::filesystem::path& directory, int classes, ImageBatchOptions options)
      : training_(open_training_images(directory, classes)),
        held_out_(open_held_out_images(directory, classes)),
        options_(options),
        order_(images_of_epoch(options, training_.count()), std::mt19937_64(options.seed)) {
    check_counts(directory.string(), training_.count(), held_out_.count(), options);
  }

  std::int64_t count() const override { return images_of_epoch(options_, training_.count()); }
  Bytes record_bytes() const override { return training_.record_bytes(); }
  Bytes sample_bytes() const override { return image_bytes() + sizeof(std::int32_t); }
  EpochEnd epoch_end() const override {
    return options_.epoch > 0 ? EpochEnd::new_batch : EpochEnd::seamless;
  }
  std::vector<std::int64_t> next_epoch() override { return order_.next(); }

  void read(std::int64_t record, std::span<std::byte> bytes) const override {
    training_.read(record, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  }

  void decode(std::span<const std::byte> bytes, std::span<std::byte> sample) const override {
    decode(training_.shape(), bytes, sample);
  }

  std::int64_t batch_of(BatchBuffers inputs) const override {
    return static_cast<std::int64_t>(inputs[1].size() / sizeof(std::int32_t));
  }

  void place(std::span<const std::byte> sample, std::int64_t slot,
             BatchBuffers inputs) const override {
    const auto at = static_cast<std::size_t>(slot);
    std::memcpy(inputs[0].data() + at * image_bytes(), sample.data(), image_bytes());
    std::memcpy(inputs[1].data() + at * sizeof(std::int32_t), sample.data() + image_bytes(),
                sizeof(std::int32_t));
  }

  bool next_held_out_batch(BatchBuffers inputs) override {
    const std::int64_t batch = batch_of(inputs);
    if (next_held_out_ + batch > held_out_.count()) return false;
    std::vector<std::uint8_t> record(held_out_.record_bytes());
    std::vector<std::byte> sample(sample_bytes());
    for (std::int64_t slot = 0; slot < batch; ++slot) {
      held_out_.read(next_held_out_++, record);
      decode(held_out_.shape(), std::as_bytes(std::span(record)), sample);
      place(sample, slot, inputs);
    }
    return true;
  }
  void restart_held_out() override { next_held_out_ = 0; }

 private:
  void decode(const ImageShape& shape, std::span<const std::byte> bytes,
              std::span<std::byte> sample) const {
    const auto* stored = reinterpret_cast<const std::uint8_t*>(bytes.data());
    decode_image(shape, {stored + 1, bytes.size() - 1}, options_.image_size,
                 {reinterpret_cast<float*>(sample.data()), image_bytes() / sizeof(float)});
    const std::int32_t label = *stored;
    std::memcpy(sample.data() + image_bytes(), &label, sizeof label);
  }

  std::size_t image_bytes() const {
    return static_cast<std::size_t>(3 * options_.image_size * options_.image_size) * sizeof(float);
  }

  ImageFiles training_;
  ImageFiles held_out_;
  ImageBatchOptions options_;
  EpochOrder order_;
  std::int64_t next_held_out_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> make_image_records(const std::filesystem::path& directory,
                                                 int classes, ImageBatchOptions options) {
  return std::make_unique<ImageRecords>(directory, classes, options);
}

}  // namespace headroom
