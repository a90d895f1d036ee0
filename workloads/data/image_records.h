// Single images from files, for pipelines that stream, decode and order them themselves. In the
// workload's own order they form the batches of make_image_batches().
#pragma once

#include <filesystem>
#include <memory>

#include "harness/workload/records.h"
#include "workloads/data/image_batches.h"
#include "workloads/data/image_files.h"

namespace headroom {

// A record is a label and its pixels as stored, a sample the decoded image and its label.
// Labels::shuffled is not supported for streams, because it permutes the labels of all records at
// once.
std::unique_ptr<RecordSource> make_image_records(const std::filesystem::path& directory,
                                                 int classes, ImageBatchOptions options);

}  // namespace headroom
