#include "harness/memory/allocator.h"

#include "harness/base/registry.h"

namespace headroom {

std::unique_ptr<Allocator> make_allocator(const Spec& spec, DeviceMemory& memory) {
  const AllocatorStrategy& strategy = Registry<AllocatorStrategy>::instance().find(spec.name());
  spec.require_known(strategy.parameters);
  return strategy.create(spec, memory);
}

}  // namespace headroom
