#include "harness/device/device.h"

#include "harness/base/registry.h"

namespace headroom {

std::unique_ptr<Device> make_device(const Spec& spec) {
  return Registry<DeviceKind>::instance().find(spec.name()).create(spec);
}

}  // namespace headroom
