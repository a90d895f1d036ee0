// Offloading on the host: from its device memory to other memory of the same machine and back, by
// the thread that computes. Nothing overlaps, and what it costs is what memcpy costs.
#include <cstring>

#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {

Kernel make_copy(const Op& op, const Program& program) {
  return [bytes = program.value(op.outputs[0]).bytes](const OpBuffers& buffers) {
    std::memcpy(buffers.outputs[0], buffers.inputs[0], bytes);
  };
}

}  // namespace headroom::host
