// Instantiations for the GPU: see work.h.

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/batch_norm.h"
#include "harness/device/cuda/module/work/layer_norm.h"
#include "harness/device/cuda/module/work/linear.h"

namespace headroom::cuda {

template Works<CubQueue> layer_norm_works<CubQueue>();
template Works<CubQueue> batch_norm_works<CubQueue>();
template Work<CubQueue> bias_gradient_work<CubQueue>(const Op&, const Program&);
template Work<CubQueue> add_bias_work<CubQueue>(const Value&);
template Work<CubQueue> transpose_bytes_work<CubQueue>(Index rows, Index columns);
template Work<CubQueue> matrix_addresses_work<CubQueue>(Index, Index, const MatrixPlaces&);

}  // namespace headroom::cuda
