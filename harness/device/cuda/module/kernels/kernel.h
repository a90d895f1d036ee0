// One op made executable on the GPU. Lowering asks a kernel for its workspace and compiling keeps
// the kernel; both build it from the same shapes, so both get the same algorithm.
#pragma once

#include <memory>

#include "harness/device/cuda/module/context.h"
#include "harness/device/device.h"

namespace headroom::cuda {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Bytes that run() needs; 0 for none.
  virtual Bytes workspace_bytes() const = 0;
  // Queues the work on the context's stream.
  virtual void run(const OpBuffers& buffers) = 0;
  // For a kernel that works beside that stream: the event that run() records once the result is
  // ready. Null otherwise.
  virtual cudaEvent_t arrival() const { return nullptr; }
};

// Kernels of the libraries, one file per family; own_kernel.h declares our own. All throw
// NotSupported for shapes and element types that the library cannot take.
std::unique_ptr<Kernel> make_convolution(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_convolution_backward_data(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_convolution_backward_weights(const Context&, const Program&,
                                                          const Op&);
std::unique_ptr<Kernel> make_copy_in(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_copy_out(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_linear_backward_weights(const Context&, const Program&, const Op&);
// Makes kernels for linear, linear_backward_data and batched_matmul.
std::unique_ptr<Kernel> make_matmul(const Context&, const Program&, const Op&);

// Converts a dimension to the libraries' int.
int library_int(std::int64_t dimension, const Op& op);

}  // namespace headroom::cuda
