// Labelled images in files, record by record: CIFAR-10's binary format or IDX.
// Formats: https://www.cs.toronto.edu/~kriz/cifar.html (binary version) and the file-format
// section of LeCun's MNIST page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace headroom {

// The stored layout: channel planes, rows top to bottom, one byte per pixel.
struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t bytes() const { return channels * height * width; }
};

class OpenFile;

class ImageFiles {
 public:
  const ImageShape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  std::size_t record_bytes() const { return static_cast<std::size_t>(1 + shape_.bytes()); }
  // Reads the label, then the pixels; may be called from any thread. Throws InputError naming the
  // file when it is truncated or the label is not a class.
  void read(std::int64_t record, std::span<std::uint8_t> label_and_pixels) const;

 private:
  friend ImageFiles open_training_images(const std::filesystem::path&, int);
  friend ImageFiles open_held_out_images(const std::filesystem::path&, int);

  // The position of the records of one image file. Labels may be in a separate file.
  struct Part {
    std::shared_ptr<const OpenFile> images, labels;
    std::int64_t first = 0;  // number of its first record
    std::int64_t first_image = 0, image_stride = 0;
    std::int64_t first_label = 0, label_stride = 0;
  };

  void add_cifar(const std::filesystem::path& path);
  void add_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

  ImageShape shape_;
  int classes_ = 0;
  std::int64_t count_ = 0;
  std::vector<Part> parts_;
};

// A directory with data_batch_*.bin and test_batch.bin (CIFAR-10), or with
// train-images-idx3-ubyte … t10k-labels-idx1-ubyte (IDX). Throw InputError naming the file and what
// is wrong with it: missing, truncated, foreign. Labels are checked when they are read.
ImageFiles open_training_images(const std::filesystem::path& directory, int classes);
ImageFiles open_held_out_images(const std::filesystem::path& directory, int classes);

// Returns the files of such a directory that these functions read, sorted.
std::vector<std::filesystem::path> image_dataset_files(const std::filesystem::path& directory);

}  // namespace headroom
