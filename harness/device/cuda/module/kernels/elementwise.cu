// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/cast.h"
#include "harness/device/cuda/module/work/dropout.h"
#include "harness/device/cuda/module/work/elementwise.h"
#include "harness/device/cuda/module/work/lifetimes.h"
#include "harness/device/cuda/module/work/update/quantise.h"

namespace headroom::cuda {

template Works<CubQueue> cast_works<CubQueue>();
template Works<CubQueue> dropout_works<CubQueue>();
template Works<CubQueue> elementwise_works<CubQueue>();
template Works<CubQueue> lifetime_works<CubQueue>();
template Works<CubQueue> quantise_works<CubQueue>();

}  // namespace headroom::cuda
