#include "workloads/data/image_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "harness/base/error.h"
#include "workloads/data/image_batches.h"

namespace headroom::image_dataset_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ImageFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("headroom-images-" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  static std::string cifar_record(int label, char fill) {
    return std::string(1, static_cast<char>(label)) + std::string(3072, fill);
  }
  static std::string big_endian(std::uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(number >> shift & 255U));
    return bytes;
  }
  static std::string idx_images(std::uint32_t count) {
    return std::string("\0\0\x08\x03", 4) + big_endian(count) + big_endian(28) + big_endian(28) +
           std::string(count * 784, '\x40');
  }
  static std::string idx_labels(const std::string& labels) {
    return std::string("\0\0\x08\x01", 4) + big_endian(static_cast<std::uint32_t>(labels.size())) +
           labels;
  }

  std::filesystem::path directory_;
};

TEST_F(ImageFiles, reads_every_batch_of_cifar_10_binary_in_order) {
  write("data_batch_2.bin", cifar_record(7, '\x10'));
  write("data_batch_1.bin", cifar_record(3, '\x20') + cifar_record(4, '\x30'));
  write("test_batch.bin", cifar_record(9, '\x7f'));
  const ImageDataset data = read_image_dataset(directory_, 10);
  EXPECT_THAT(data.training.labels, ::testing::ElementsAre(3, 4, 7));
  EXPECT_EQ(data.training.pixels.size(), 3u * 3072);
  EXPECT_EQ(data.training.pixels[3072], 0x30);
  EXPECT_EQ(data.held_out.labels[0], 9);
}

TEST_F(ImageFiles, reads_idx_pairs_of_grey_images) {
  write("train-images-idx3-ubyte", idx_images(2));
  write("train-labels-idx1-ubyte", idx_labels(std::string("\x01\x02", 2)));
  write("t10k-images-idx3-ubyte", idx_images(1));
  write("t10k-labels-idx1-ubyte", idx_labels(std::string("\x05", 1)));
  const ImageDataset data = read_image_dataset(directory_, 10);
  EXPECT_EQ(data.training.shape.channels, 1);
  EXPECT_EQ(data.training.shape.height, 28);
  EXPECT_THAT(data.training.labels, ::testing::ElementsAre(1, 2));
}

TEST_F(ImageFiles, refuses_a_truncated_cifar_file_and_names_it) {
  write("data_batch_1.bin", cifar_record(3, 'x').substr(0, 3000));
  write("test_batch.bin", cifar_record(1, 'x'));
  EXPECT_THAT(
      [&] { read_image_dataset(directory_, 10); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("truncated"))));
}

TEST_F(ImageFiles, refuses_idx_data_shorter_than_its_header_promises) {
  write("train-images-idx3-ubyte", idx_images(2).substr(0, 1000));
  write("train-labels-idx1-ubyte", idx_labels(std::string("\x01\x02", 2)));
  EXPECT_THAT([&] { read_image_dataset(directory_, 10); },
              ThrowsMessage<InputError>(HasSubstr("the header promises 1568 bytes")));
}

TEST_F(ImageFiles, refuses_labels_outside_the_classes) {
  write("data_batch_1.bin", cifar_record(3, 'x') + cifar_record(10, 'x'));
  write("test_batch.bin", cifar_record(1, 'x'));
  EXPECT_THAT([&] { read_image_dataset(directory_, 10); },
              ThrowsMessage<InputError>(HasSubstr("record 1 has label 10")));
}

TEST_F(ImageFiles, says_what_a_directory_without_data_lacks) {
  EXPECT_THAT([&] { read_image_dataset(directory_, 10); },
              ThrowsMessage<InputError>(HasSubstr("holds neither data_batch_*.bin")));
  EXPECT_THROW(read_image_dataset(directory_ / "absent", 10), InputError);
}

TEST_F(ImageFiles, resamples_an_image_to_the_nearest_pixel) {
  std::string record = cifar_record(0, '\0');
  for (int x = 0; x < 32; ++x) record[static_cast<std::size_t>(1 + x)] = static_cast<char>(x);
  write("data_batch_1.bin", record);
  write("test_batch.bin", record);
  const ImageDataset data = read_image_dataset(directory_, 10);
  std::vector<float> out(std::size_t{3} * 64 * 64);
  decode_image(data.training, 0, 64, out);
  for (int x = 0; x < 64; ++x)
    EXPECT_FLOAT_EQ(out[static_cast<std::size_t>(x)], (static_cast<float>(x / 2) - 127.5F) / 64.0F);
  EXPECT_FLOAT_EQ(out[2 * 64], -127.5F / 64.0F) << "the second row of pixels is black";
}

class Batches : public ImageFiles {
 protected:
  // Each image has its own number as pixel value, and class number / 2.
  void write_sixteen_images() {
    std::string bytes;
    for (int i = 0; i < 16; ++i) bytes += cifar_record(i / 2, static_cast<char>(i));
    write("data_batch_1.bin", bytes);
    write("test_batch.bin", bytes);
  }

  std::vector<int> labels_of_an_epoch(Labels labels, std::uint64_t seed) {
    write_sixteen_images();
    auto source =
        make_image_batches(read_image_dataset(directory_, 10),
                           {.batch = 4, .image_size = 32, .seed = seed, .labels = labels});
    std::vector<float> images(std::size_t{4} * 3072);
    std::vector<std::int32_t> classes(4);
    std::vector<std::span<std::byte>> slots = {std::as_writable_bytes(std::span(images)),
                                               std::as_writable_bytes(std::span(classes))};
    std::vector<int> by_image(16, -1);
    for (int batch = 0; batch < 4; ++batch) {
      source->next_training_batch(slots);
      for (std::size_t i = 0; i < 4; ++i) {
        const float number = images[i * 3072] * 64.0F + 127.5F;
        by_image[static_cast<std::size_t>(number + 0.5F)] = classes[i];
      }
    }
    return by_image;
  }
};

// Returns the numbers of the images in consecutive batches of these sizes; an epoch has ten images.
std::vector<int> images_in(BatchSource& source, std::initializer_list<std::size_t> sizes) {
  std::vector<int> numbers;
  for (const std::size_t size : sizes) {
    std::vector<float> images(size * 3072);
    std::vector<std::int32_t> classes(size);
    const std::vector<std::span<std::byte>> slots = {std::as_writable_bytes(std::span(images)),
                                                     std::as_writable_bytes(std::span(classes))};
    source.next_training_batch(slots);
    for (std::size_t i = 0; i < size; ++i)
      numbers.push_back(static_cast<int>(images[i * 3072] * 64.0F + 127.5F + 0.5F));
  }
  return numbers;
}

TEST_F(Batches, of_an_epoch_show_its_images_once_with_the_odd_batch_that_ends_it) {
  write_sixteen_images();
  const auto source = make_image_batches(read_image_dataset(directory_, 10),
                                         {.batch = 4, .image_size = 32, .seed = 42, .epoch = 10});
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_THAT(images_in(*source, {4, 4, 2}),
                ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(Batches, of_an_epoch_drop_what_does_not_fill_one) {
  write_sixteen_images();
  const auto source = make_image_batches(read_image_dataset(directory_, 10),
                                         {.batch = 4, .image_size = 32, .seed = 42, .epoch = 10});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> shown = images_in(*source, {4, 4});
    std::sort(shown.begin(), shown.end());
    EXPECT_EQ(std::adjacent_find(shown.begin(), shown.end()), shown.end());
  }
}

TEST_F(Batches, of_an_epoch_larger_than_the_data_are_refused) {
  write_sixteen_images();
  EXPECT_THAT(
      [&] {
        make_image_batches(read_image_dataset(directory_, 10),
                           {.batch = 4, .image_size = 32, .seed = 42, .epoch = 17});
      },
      ThrowsMessage<InputError>(HasSubstr("16 images, but epoch= asks for 17")));
}

TEST_F(Batches, show_every_image_once_an_epoch_with_its_own_label) {
  const auto labels = labels_of_an_epoch(Labels::as_read, 42);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(labels[static_cast<std::size_t>(i)], i / 2);
}

TEST_F(Batches, permute_the_labels_among_the_images_when_asked) {
  const auto labels = labels_of_an_epoch(Labels::shuffled, 42);
  int moved = 0;
  for (int i = 0; i < 16; ++i) moved += labels[static_cast<std::size_t>(i)] != i / 2 ? 1 : 0;
  EXPECT_GT(moved, 4);
  EXPECT_THAT(labels,
              ::testing::UnorderedElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
}

}  // namespace
}  // namespace headroom::image_dataset_test
