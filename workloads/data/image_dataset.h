// Labelled images in memory: all of a directory's (workloads/data/image_files.h), the user's own or
// a generated set written once in CIFAR-10's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "workloads/data/image_files.h"

namespace headroom {

struct ImageSet {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // count × channels × height × width
  std::vector<std::uint8_t> labels;  // count

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct ImageDataset {
  ImageSet training;
  ImageSet held_out;
  std::string origin;  // "generated" or the directory
};

// Throws InputError naming the file and what is wrong with it, labels outside [0, classes)
// included.
ImageDataset read_image_dataset(const std::filesystem::path& directory, int classes);

// The generated set's directory; writes it on first use (safe beside other processes). Ten
// classes of 32×32 coloured gratings under noise: learnable, not trivially so, never real data.
std::filesystem::path generated_image_directory();

// Decodes one image to `out` [3, size, size] as floats around 0; grey images fill all three
// channels, other sizes are resampled by nearest neighbour.
void decode_image(const ImageShape& shape, std::span<const std::uint8_t> pixels, std::int64_t size,
                  std::span<float> out);
void decode_image(const ImageSet& set, std::int64_t index, std::int64_t size, std::span<float> out);

}  // namespace headroom
