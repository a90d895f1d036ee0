// The inputs of a generative adversarial network: real images, and noise for each of its two turns.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/workload/records.h"
#include "harness/workload/workload.h"
#include "workloads/data/image_dataset.h"

namespace headroom {

// Inputs, all f32: images [batch, 3, size, size] in −1 … 1, noise of the discriminator's turn and
// of the generator's (normal, any size). Images come in a seeded random order; a batch may span two
// epochs. A held-out batch has only images.
std::unique_ptr<BatchSource> make_image_and_noise_batches(ImageDataset dataset, std::int64_t batch,
                                                          std::int64_t image_size,
                                                          std::uint64_t seed);

// The same batches from records; the labels in batches of `images` are dropped.
std::unique_ptr<RecordSource> make_image_and_noise_records(std::unique_ptr<RecordSource> images,
                                                           std::int64_t batch, std::uint64_t seed);

}  // namespace headroom
