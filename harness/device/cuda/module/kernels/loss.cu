// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/hits.h"
#include "harness/device/cuda/module/work/loss.h"
#include "harness/device/cuda/module/work/sigmoid_loss.h"
#include "harness/device/cuda/module/work/softmax.h"

namespace headroom::cuda {

template Works<CubQueue> hit_works<CubQueue>();
template Works<CubQueue> loss_works<CubQueue>();
template Works<CubQueue> sigmoid_loss_works<CubQueue>();
template Works<CubQueue> softmax_works<CubQueue>();

}  // namespace headroom::cuda
