#include "workloads/data/image_dataset.h"

#include <algorithm>

namespace headroom {
namespace {

ImageSet read_all(const ImageFiles& files) {
  ImageSet set;
  set.shape = files.shape();
  const auto image = static_cast<std::size_t>(set.shape.bytes());
  const auto count = static_cast<std::size_t>(files.count());
  set.labels.resize(count);
  set.pixels.resize(count * image);
  std::vector<std::uint8_t> record(files.record_bytes());
  for (std::size_t i = 0; i < count; ++i) {
    files.read(static_cast<std::int64_t>(i), record);
    set.labels[i] = record[0];
    std::copy(record.begin() + 1, record.end(),
              set.pixels.begin() + static_cast<std::ptrdiff_t>(i * image));
  }
  return set;
}

}  // namespace

ImageDataset read_image_dataset(const std::filesystem::path& directory, int classes) {
  return {.training = read_all(open_training_images(directory, classes)),
          .held_out = read_all(open_held_out_images(directory, classes)),
          .origin = directory.string()};
}

void decode_image(const ImageShape& shape, std::span<const std::uint8_t> pixels, std::int64_t size,
                  std::span<float> out) {
  float* pixel = out.data();
  for (std::int64_t c = 0; c < 3; ++c) {
    const std::uint8_t* plane =
        pixels.data() + std::min(c, shape.channels - 1) * shape.height * shape.width;
    for (std::int64_t y = 0; y < size; ++y) {
      const std::uint8_t* row = plane + y * shape.height / size * shape.width;
      for (std::int64_t x = 0; x < size; ++x) {
        const std::int64_t column = x * shape.width / size;
        *pixel++ = (static_cast<float>(row[column]) - 127.5F) / 64.0F;
      }
    }
  }
}

void decode_image(const ImageSet& set, std::int64_t index, std::int64_t size,
                  std::span<float> out) {
  const auto image = static_cast<std::size_t>(set.shape.bytes());
  decode_image(set.shape,
               std::span(set.pixels).subspan(static_cast<std::size_t>(index) * image, image), size,
               out);
}

}  // namespace headroom
