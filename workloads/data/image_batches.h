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
  shuffled,  // training labels permuted: what can be learnt is gone, everything else stays
};

struct ImageBatchOptions {
  std::int64_t batch = 0;
  std::int64_t image_size = 0;
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  // images of an epoch, the data set's first; 0: all, without an end
  Labels labels = Labels::as_read;
};

// Throws InputError when there are fewer images than a batch or an epoch takes.
void check_counts(const std::string& origin, std::int64_t training, std::int64_t held_out,
                  const ImageBatchOptions& options);
std::int64_t images_of_epoch(const ImageBatchOptions& options, std::int64_t training);

// Inputs: images f32 [batch, 3, size, size], labels s32 [batch], of any batch up to the options'.
// An epoch ends where what is left of it does not fill the batch that is asked for, and the next
// begins in another order; without an end, epochs follow each other inside a batch too. The last
// held-out batch is dropped when it is not whole.
std::unique_ptr<BatchSource> make_image_batches(ImageDataset dataset, ImageBatchOptions options);

}  // namespace headroom
