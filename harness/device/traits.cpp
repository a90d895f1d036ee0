#include "harness/device/traits.h"

#include "harness/base/registry.h"
#include "harness/device/device.h"

namespace headroom {

DeviceTraits traits_of(const Spec& device) {
  const auto& kinds = Registry<DeviceKind>::instance();
  return kinds.contains(device.name()) ? kinds.find(device.name()).traits : DeviceTraits{};
}

}  // namespace headroom
