// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/gather.h"
#include "harness/device/cuda/module/work/update/prune.h"

namespace headroom::cuda {

template Works<CubQueue> gather_works<CubQueue>();
template Works<CubQueue> prune_works<CubQueue>();

}  // namespace headroom::cuda
