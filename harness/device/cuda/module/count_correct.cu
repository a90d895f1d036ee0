#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_reduce.cuh>

#include "harness/device/cuda/module/count_correct.h"

namespace headroom::cuda {
namespace {

struct IsCorrect {
  const float* logits;
  const std::int32_t* labels;
  std::int64_t classes;

  __host__ __device__ float operator()(std::int64_t row) const {
    const float* scores = logits + row * classes;
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < classes; ++i)
      if (scores[i] > scores[largest]) largest = i;
    return largest == labels[row] ? 1.0F : 0.0F;
  }
};

__global__ void code_probe() {}

}  // namespace

cudaError_t count_correct(void* workspace, std::size_t& workspace_bytes, const float* logits,
                          const std::int32_t* labels, std::int64_t rows, std::int64_t classes,
                          float* count, cudaStream_t stream) {
  const auto hits = thrust::make_transform_iterator(thrust::make_counting_iterator(std::int64_t{0}),
                                                    IsCorrect{logits, labels, classes});
  return cub::DeviceReduce::Sum(workspace, workspace_bytes, hits, count, rows, stream);
}

cudaError_t find_count_correct_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, code_probe);
}

}  // namespace headroom::cuda
