#include "workloads/data/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "harness/base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be opened for reading", path.string()));
  file.seekg(0, std::ios::end);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw InputError(fmt::format("{}: reading failed midway", path.string()));
  return bytes;
}

void check_label(int label, int classes, std::int64_t index, const fs::path& path) {
  if (label >= classes)
    throw InputError(fmt::format("{}: record {} has label {}, but the workload has {} classes",
                                 path.string(), index, label, classes));
}

void append_cifar_batch(const fs::path& path, int classes, ImageSet& set) {
  constexpr std::size_t kImage = std::size_t{3} * 32 * 32;
  constexpr std::size_t kRecord = 1 + kImage;
  const auto bytes = read_bytes(path);
  if (bytes.empty() || bytes.size() % kRecord != 0)
    throw InputError(
        fmt::format("{}: {} bytes are not a whole number of {}-byte CIFAR-10 records; the file is "
                    "truncated or of another format",
                    path.string(), bytes.size(), kRecord));
  set.channels = 3;
  set.height = set.width = 32;
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    check_label(bytes[at], classes, static_cast<std::int64_t>(at / kRecord), path);
    set.labels.push_back(bytes[at]);
    const auto image = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    set.pixels.insert(set.pixels.end(), image, image + kImage);
  }
}

// IDX: two zero bytes, element type (8 = unsigned byte), number of dimensions, then each dimension
// as a big-endian 32-bit number, then the data.
struct IdxArray {
  std::vector<std::int64_t> dimensions;
  std::vector<std::uint8_t> data;
};

IdxArray read_idx(const fs::path& path, std::size_t rank) {
  const auto bytes = read_bytes(path);
  const std::size_t header = 4 + 4 * rank;
  if (bytes.size() < header || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != rank)
    throw InputError(
        fmt::format("{}: not an IDX file of {} dimensions of unsigned bytes", path.string(), rank));
  IdxArray array;
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t size = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) size = size * 256 + bytes[4 + 4 * d + byte];
    array.dimensions.push_back(size);
    elements *= size;
  }
  if (static_cast<std::int64_t>(bytes.size() - header) != elements)
    throw InputError(fmt::format("{}: the header promises {} bytes of data, the file has {}",
                                 path.string(), elements, bytes.size() - header));
  array.data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return array;
}

ImageSet read_idx_pair(const fs::path& images_path, const fs::path& labels_path, int classes) {
  IdxArray images = read_idx(images_path, 3);
  IdxArray labels = read_idx(labels_path, 1);
  if (images.dimensions[0] != labels.dimensions[0])
    throw InputError(fmt::format("{}: {} labels for {} images in {}", labels_path.string(),
                                 labels.dimensions[0], images.dimensions[0], images_path.string()));
  for (std::size_t i = 0; i < labels.data.size(); ++i)
    check_label(labels.data[i], classes, static_cast<std::int64_t>(i), labels_path);
  ImageSet set;
  set.channels = 1;
  set.height = images.dimensions[1];
  set.width = images.dimensions[2];
  set.pixels = std::move(images.data);
  set.labels = std::move(labels.data);
  return set;
}

std::vector<fs::path> cifar_training_batches(const fs::path& directory) {
  std::vector<fs::path> batches;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("data_batch_") && name.ends_with(".bin")) batches.push_back(entry.path());
  }
  std::sort(batches.begin(), batches.end());
  return batches;
}

}  // namespace

std::vector<fs::path> image_dataset_files(const fs::path& directory) {
  std::vector<fs::path> files = cifar_training_batches(directory);
  if (!files.empty()) {
    files.push_back(directory / "test_batch.bin");
    return files;
  }
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
                           "train-images-idx3-ubyte", "train-labels-idx1-ubyte"})
    files.push_back(directory / name);
  return files;
}

ImageDataset read_image_dataset(const fs::path& directory, int classes) {
  if (!fs::is_directory(directory))
    throw InputError(
        fmt::format("{}: is not a directory; data= wants one with CIFAR-10 binary or "
                    "IDX files",
                    directory.string()));
  ImageDataset dataset;
  dataset.origin = directory.string();
  const std::vector<fs::path> batches = cifar_training_batches(directory);
  if (!batches.empty()) {
    for (const auto& path : batches) append_cifar_batch(path, classes, dataset.training);
    append_cifar_batch(directory / "test_batch.bin", classes, dataset.held_out);
  } else if (fs::exists(directory / "train-images-idx3-ubyte")) {
    dataset.training = read_idx_pair(directory / "train-images-idx3-ubyte",
                                     directory / "train-labels-idx1-ubyte", classes);
    dataset.held_out = read_idx_pair(directory / "t10k-images-idx3-ubyte",
                                     directory / "t10k-labels-idx1-ubyte", classes);
  } else {
    throw InputError(
        fmt::format("{}: holds neither data_batch_*.bin (CIFAR-10 binary) nor "
                    "train-images-idx3-ubyte (IDX, unpacked)",
                    directory.string()));
  }
  return dataset;
}

void decode_image(const ImageSet& set, std::int64_t index, std::int64_t size,
                  std::span<float> out) {
  const std::uint8_t* image = set.pixels.data() + index * set.bytes_per_image();
  float* pixel = out.data();
  for (std::int64_t c = 0; c < 3; ++c) {
    const std::uint8_t* plane = image + std::min(c, set.channels - 1) * set.height * set.width;
    for (std::int64_t y = 0; y < size; ++y) {
      const std::uint8_t* row = plane + y * set.height / size * set.width;
      for (std::int64_t x = 0; x < size; ++x) {
        const std::int64_t column = x * set.width / size;
        *pixel++ = (static_cast<float>(row[column]) - 127.5F) / 64.0F;
      }
    }
  }
}

}  // namespace headroom
