#include "workloads/data/image_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "harness/base/error.h"

namespace headroom {

namespace fs = std::filesystem;

// A file that any thread may read at any offset.
class OpenFile {
 public:
  explicit OpenFile(fs::path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0)
      throw InputError(fmt::format("{}: cannot be opened for reading", path_.string()));
    struct ::stat status {};
    if (::fstat(descriptor_, &status) == 0) bytes_ = status.st_size;
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::string path() const { return path_.string(); }
  std::int64_t bytes() const { return bytes_; }

  void read(std::int64_t at, std::span<std::uint8_t> into) const {
    while (!into.empty()) {
      const ::ssize_t read = ::pread(descriptor_, into.data(), into.size(), at);
      if (read <= 0) throw InputError(fmt::format("{}: reading failed midway", path()));
      into = into.subspan(static_cast<std::size_t>(read));
      at += read;
    }
  }

 private:
  fs::path path_;
  int descriptor_;
  std::int64_t bytes_ = 0;
};

namespace {

constexpr ImageShape kCifar = {.channels = 3, .height = 32, .width = 32};

// IDX: two zero bytes, element type (8 = unsigned byte), number of dimensions, then each dimension
// as a big-endian 32-bit number, then the data.
struct IdxHeader {
  std::vector<std::int64_t> dimensions;
  std::int64_t bytes = 0;  // where the data begins
};

IdxHeader read_idx_header(const OpenFile& file, std::size_t rank) {
  std::array<std::uint8_t, 16> bytes{};
  const std::size_t header = 4 + 4 * rank;
  const bool whole = file.bytes() >= static_cast<std::int64_t>(header);
  if (whole) file.read(0, std::span(bytes).first(header));
  if (!whole || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != rank)
    throw InputError(
        fmt::format("{}: not an IDX file of {} dimensions of unsigned bytes", file.path(), rank));
  IdxHeader result{.dimensions = {}, .bytes = static_cast<std::int64_t>(header)};
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t size = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) size = size * 256 + bytes[4 + 4 * d + byte];
    result.dimensions.push_back(size);
    elements *= size;
  }
  if (file.bytes() - result.bytes != elements)
    throw InputError(fmt::format("{}: the header promises {} bytes of data, the file has {}",
                                 file.path(), elements, file.bytes() - result.bytes));
  return result;
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

enum class Format : std::uint8_t { cifar, idx };

Format format_of(const fs::path& directory) {
  if (!fs::is_directory(directory))
    throw InputError(
        fmt::format("{}: is not a directory; data= needs one with CIFAR-10 binary or IDX files",
                    directory.string()));
  if (!cifar_training_batches(directory).empty()) return Format::cifar;
  if (fs::exists(directory / "train-images-idx3-ubyte")) return Format::idx;
  throw InputError(
      fmt::format("{}: holds neither data_batch_*.bin (CIFAR-10 binary) nor "
                  "train-images-idx3-ubyte (IDX, unpacked)",
                  directory.string()));
}

}  // namespace

void ImageFiles::add_cifar(const fs::path& path) {
  const auto file = std::make_shared<const OpenFile>(path);
  const std::int64_t record = 1 + kCifar.bytes();
  if (file->bytes() == 0 || file->bytes() % record != 0)
    throw InputError(
        fmt::format("{}: {} bytes are not a whole number of {}-byte CIFAR-10 records; the file is "
                    "truncated or of another format",
                    path.string(), file->bytes(), record));
  parts_.push_back({.images = file,
                    .labels = file,
                    .first = count_,
                    .first_image = 1,
                    .image_stride = record,
                    .first_label = 0,
                    .label_stride = record});
  shape_ = kCifar;
  count_ += file->bytes() / record;
}

void ImageFiles::add_idx(const fs::path& images_path, const fs::path& labels_path) {
  const auto images = std::make_shared<const OpenFile>(images_path);
  const auto labels = std::make_shared<const OpenFile>(labels_path);
  const IdxHeader of_images = read_idx_header(*images, 3);
  const IdxHeader of_labels = read_idx_header(*labels, 1);
  const std::int64_t count = of_images.dimensions[0];
  if (count != of_labels.dimensions[0])
    throw InputError(fmt::format("{}: {} labels for {} images in {}", labels_path.string(),
                                 of_labels.dimensions[0], count, images_path.string()));
  shape_ = {.channels = 1, .height = of_images.dimensions[1], .width = of_images.dimensions[2]};
  parts_.push_back({.images = images,
                    .labels = labels,
                    .first = count_,
                    .first_image = of_images.bytes,
                    .image_stride = shape_.bytes(),
                    .first_label = of_labels.bytes,
                    .label_stride = 1});
  count_ += count;
}

void ImageFiles::read(std::int64_t record, std::span<std::uint8_t> label_and_pixels) const {
  const auto after = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.first > record; });
  const Part& part = *std::prev(after);
  const std::int64_t within = record - part.first;
  const bool together = part.images == part.labels;
  const auto label = label_and_pixels.first(together ? label_and_pixels.size() : 1);
  part.labels->read(part.first_label + within * part.label_stride, label);
  if (!together)
    part.images->read(part.first_image + within * part.image_stride, label_and_pixels.subspan(1));
  if (label[0] >= classes_)
    throw InputError(fmt::format("{}: record {} has label {}, but the workload has {} classes",
                                 part.labels->path(), within, label[0], classes_));
}

ImageFiles open_training_images(const fs::path& directory, int classes) {
  ImageFiles files;
  files.classes_ = classes;
  if (format_of(directory) == Format::idx)
    files.add_idx(directory / "train-images-idx3-ubyte", directory / "train-labels-idx1-ubyte");
  else
    for (const fs::path& path : cifar_training_batches(directory)) files.add_cifar(path);
  return files;
}

ImageFiles open_held_out_images(const fs::path& directory, int classes) {
  ImageFiles files;
  files.classes_ = classes;
  if (format_of(directory) == Format::idx)
    files.add_idx(directory / "t10k-images-idx3-ubyte", directory / "t10k-labels-idx1-ubyte");
  else
    files.add_cifar(directory / "test_batch.bin");
  return files;
}

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

}  // namespace headroom
