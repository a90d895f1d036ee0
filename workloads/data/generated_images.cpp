// Generates a data set for machines without one: coloured gratings whose orientation and frequency
// encode the class, with random phase, colour, contrast and noise, in CIFAR-10's binary format.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <random>

#include "harness/base/error.h"
#include "workloads/data/cache.h"
#include "workloads/data/image_dataset.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;
constexpr int kSide = 32;
constexpr int kTrainingImages = 4096;
constexpr int kHeldOutImages = 1024;

// Returns a number in [0, 1), the same on every standard library.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Sum of twelve uniforms: near enough to a normal deviate for pixel noise.
double noise(std::mt19937_64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(random);
  return sum;
}

std::string record(int label, std::mt19937_64& random) {
  const double angle = std::numbers::pi * (label % 5) / 5 + 0.15 * (uniform(random) - 0.5);
  const double frequency = label < 5 ? 0.35 : 0.75;  // radians per pixel
  const double phase = 2 * std::numbers::pi * uniform(random);
  const double contrast = 25 + 35 * uniform(random);
  std::string bytes(1, static_cast<char>(label));
  for (int channel = 0; channel < 3; ++channel) {
    const double level = 90 + 75 * uniform(random);
    const double gain = contrast * (0.4 + 0.6 * uniform(random));
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const double wave =
            std::sin(frequency * (x * std::cos(angle) + y * std::sin(angle)) + phase);
        const double value = level + gain * wave + 30 * noise(random);
        bytes.push_back(static_cast<char>(std::lround(std::clamp(value, 0.0, 255.0))));
      }
    }
  }
  return bytes;
}

void write_batch(const fs::path& path, int images, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < images; ++i) {
    const std::string bytes = record(i % kClasses, random);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  file.close();
  if (!file)
    throw InputError(
        fmt::format("{}: writing the generated data set failed; set XDG_CACHE_HOME "
                    "to a directory with 16 MB free, or name your own with data=",
                    path.string()));
}

}  // namespace

fs::path generated_image_directory() {
  return cached_directory("generated-images-1", [](const fs::path& directory) {
    write_batch(directory / "data_batch_1.bin", kTrainingImages, 1);
    write_batch(directory / "test_batch.bin", kHeldOutImages, 2);
  });
}

}  // namespace headroom
