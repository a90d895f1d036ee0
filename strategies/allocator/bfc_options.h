// The parameters of `bfc(…)`, and the budget derived from them.
#pragma once

#include "harness/base/spec.h"

namespace headroom {

struct BfcOptions {
  bool growth = false;
  bool garbage_collection = true;
  Bytes limit = 0;               // of all regions together
  Bytes max_slack = 128 * kMiB;  // a chunk this much larger than the request is split
  bool regions_descend = false;  // each region counts as lying below the previous ones
};

// The budget follows SingleVirtualDeviceMemoryLimit in
// tensorflow/core/common_runtime/gpu/gpu_device.cc: a fraction of the whole device, or the whole
// `capacity` less a reserve. Throws InputError.
BfcOptions read_bfc_options(const Spec& spec, Bytes capacity, Bytes total);

}  // namespace headroom
