// Batches of an ImageDataset in a seeded random order, as a Workload hands them to the Trainer.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/run/workload.h"
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
  Labels labels = Labels::as_read;
};

// Inputs: images f32 [batch, 3, size, size], labels s32 [batch]. Epochs follow each other without
// a seam; the last held-out batch is dropped when it is not whole.
std::unique_ptr<BatchSource> make_image_batches(ImageDataset dataset, ImageBatchOptions options);

}  // namespace headroom
