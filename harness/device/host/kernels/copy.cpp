// Offloading on the host: memcpy between its device memory and other memory of the same machine, on
// the computing thread. Copies overlap with nothing and cost what memcpy costs.
#include <cstring>

#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {

Kernel make_copy(const Op& op, const Program& program) {
  return [bytes = program.value(op.outputs[0]).bytes](const OpBuffers& buffers) {
    std::memcpy(buffers.outputs[0], buffers.inputs[0], bytes);
  };
}

}  // namespace headroom::host
