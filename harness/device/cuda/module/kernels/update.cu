// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/accumulate.h"
#include "harness/device/cuda/module/work/gradients.h"
#include "harness/device/cuda/module/work/update/adafactor.h"
#include "harness/device/cuda/module/work/update/adam8bit.h"
#include "harness/device/cuda/module/work/update/update.h"
#include "harness/device/cuda/module/work/update/update_lists.h"

namespace headroom::cuda {

template Works<CubQueue> accumulate_works<CubQueue>();
template Works<CubQueue> adafactor_works<CubQueue>();
template Works<CubQueue> adam8bit_works<CubQueue>();
template Works<CubQueue> gradient_works<CubQueue>();
template Works<CubQueue> update_list_works<CubQueue>();
template Works<CubQueue> update_works<CubQueue>();

}  // namespace headroom::cuda
