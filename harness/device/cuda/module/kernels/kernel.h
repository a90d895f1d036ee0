// One op made executable on the GPU. Lowering asks a kernel for its workspace, compiling keeps it:
// both build it from the same shapes, so the algorithm is the same.
#pragma once

#include <memory>

#include "harness/device/cuda/module/context.h"
#include "harness/device/device.h"

namespace headroom::cuda {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Exactly what run() needs; 0 for none.
  virtual Bytes workspace_bytes() const = 0;
  // Queues the work on the context's stream.
  virtual void run(const OpBuffers& buffers) = 0;
  // Of one that works beside that stream: recorded by run() once the result is there. Else null.
  virtual cudaEvent_t arrival() const { return nullptr; }
};

// By the libraries, one file per family; own_kernel.h has the kernels of our own. Throw
// NotSupported for shapes and element types that the GPU's library cannot take.
std::unique_ptr<Kernel> make_convolution(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_convolution_backward_data(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_convolution_backward_weights(const Context&, const Program&,
                                                          const Op&);
std::unique_ptr<Kernel> make_copy_in(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_copy_out(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_linear_backward_weights(const Context&, const Program&, const Op&);
// linear, linear_backward_data, batched_matmul.
std::unique_ptr<Kernel> make_matmul(const Context&, const Program&, const Op&);

// A dimension as the libraries count it.
int library_int(std::int64_t dimension, const Op& op);

}  // namespace headroom::cuda
