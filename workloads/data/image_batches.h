// Batches of an ImageDataset in a seeded random order, as a Workload hands them to the Trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "harness/workload/workload.h"
#include "workloads/data/image_dataset.h"

namespace headroom {

enum class Labels : std::uint8_t {
  as_read,
  shuffled,  // training labels permuted: nothing can be learnt, everything else stays
};

struct ImageBatchOptions {
  std::int64_t batch = 0;
  std::int64_t image_size = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  // images per epoch, the first of the data set; 0: all, without epochs
  Labels labels = Labels::as_read;
};

// Throws InputError when there are fewer images than a batch or an epoch needs.
void check_counts(const std::string& origin, std::int64_t training, std::int64_t held_out,
                  const ImageBatchOptions& options);
std::int64_t images_of_epoch(const ImageBatchOptions& options, std::int64_t training);

// Inputs: images f32 [batch, 3, size, size], labels s32 [batch], of any batch up to the options'.
// An epoch ends when its rest does not fill the requested batch, and the next begins in another
// order; without end of epoch, a batch may span two epochs. An incomplete last held-out batch is
// dropped.
std::unique_ptr<BatchSource> make_image_batches(ImageDataset dataset, ImageBatchOptions options);

}  // namespace headroom
