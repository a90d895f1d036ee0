// Labelled images from files: CIFAR-10's binary format or IDX, the user's own or a generated set
// written once in CIFAR-10's format.
// Formats: https://www.cs.toronto.edu/~kriz/cifar.html (binary version) and the file-format
// section of LeCun's MNIST page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace headroom {

// Pixels as stored: channel planes, rows top to bottom, one byte each.
struct ImageSet {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // count × channels × height × width
  std::vector<std::uint8_t> labels;  // count

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t bytes_per_image() const { return channels * height * width; }
};

struct ImageDataset {
  ImageSet training;
  ImageSet held_out;
  std::string origin;  // "generated" or the directory
};

// A directory with data_batch_*.bin and test_batch.bin (CIFAR-10), or with
// train-images-idx3-ubyte … t10k-labels-idx1-ubyte (IDX). Throws InputError naming the file and
// what is wrong with it: missing, truncated, foreign, labels outside [0, classes).
ImageDataset read_image_dataset(const std::filesystem::path& directory, int classes);

// The files of such a directory that read_image_dataset() reads, sorted.
std::vector<std::filesystem::path> image_dataset_files(const std::filesystem::path& directory);

// The generated set's directory; writes it on first use (safe beside other processes). Ten
// classes of 32×32 coloured gratings under noise: learnable, not trivially so, never real data.
std::filesystem::path generated_image_directory();

// One image to `out` [3, size, size] as floats around 0; grey images fill all three channels,
// other sizes are resampled to the nearest pixel.
void decode_image(const ImageSet& set, std::int64_t index, std::int64_t size, std::span<float> out);

}  // namespace headroom
