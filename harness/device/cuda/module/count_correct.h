// The seam to nvcc: only this header is read on both sides, and Meson does not rebuild a .cu file
// when a header changes, so it stays this small.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace headroom::cuda {

// Writes to `count` how many rows of logits[rows, classes] are largest (first of equals) at their
// label. With `workspace` null it only sets `workspace_bytes`.
cudaError_t count_correct(void* workspace, std::size_t& workspace_bytes, const float* logits,
                          const std::int32_t* labels, std::int64_t rows, std::int64_t classes,
                          float* count, cudaStream_t stream);

// Whether this GPU can run the code compiled here.
cudaError_t find_count_correct_code();

}  // namespace headroom::cuda
