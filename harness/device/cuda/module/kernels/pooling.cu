// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/average_pool.h"
#include "harness/device/cuda/module/work/max_pool.h"
#include "harness/device/cuda/module/work/resample.h"

namespace headroom::cuda {

template Works<CubQueue> average_pool_works<CubQueue>();
template Works<CubQueue> max_pool_works<CubQueue>();
template Works<CubQueue> resample_works<CubQueue>();

}  // namespace headroom::cuda
