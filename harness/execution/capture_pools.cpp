#include "harness/execution/capture_pools.h"

#include <algorithm>
#include <numeric>

#include "harness/program/captured.h"

namespace headroom {

CapturePools::CapturePools(std::span<const Program* const> programs, Allocator& allocator,
                           Allocator* host_side)
    : allocator_(allocator), host_side_(host_side) {
  std::vector<const Program*> sharing;
  try {
    for (const Program* program : programs) {
      const auto pool = captured_into(*program);
      if (!pool) continue;
      places_[program].plan = plan_pool(*program);
      if (*pool == CapturePool::shared)
        sharing.push_back(program);
      else
        take(program->name, {program});
    }
    if (!sharing.empty()) take("captured", sharing);
  } catch (...) {
    give_back();
    throw;
  }
}

CapturePools::~CapturePools() { give_back(); }

// Allocates the pool with role workspace, because it holds activations and gradients alike: to a
// strategy it is scratch memory that lives across steps.
void CapturePools::take(const std::string& name, const std::vector<const Program*>& programs) {
  Bytes device = 0;
  Bytes host = 0;
  for (const Program* program : programs) {
    device = std::max(device, places_.at(program).plan.device);
    host = std::max(host, places_.at(program).plan.host);
  }
  const AllocationHint hint{
      .role = Role::workspace, .phase = Phase::initialize, .persistent = true, .name = name};
  device_.push_back(allocator_.allocate(device, hint));
  if (host > 0) host_.push_back(host_side_->allocate(host, hint));
  for (const Program* program : programs) {
    places_.at(program).device = device_.back();
    if (host > 0) places_.at(program).host = host_.back();
  }
}

void CapturePools::give_back() {
  for (const Block& block : device_) allocator_.deallocate(block);
  for (const Block& block : host_) host_side_->deallocate(block);
}

const CapturePools::Place* CapturePools::of(const Program& program) const {
  const auto found = places_.find(&program);
  return found == places_.end() ? nullptr : &found->second;
}

Bytes CapturePools::bytes() const {
  return std::accumulate(device_.begin(), device_.end(), Bytes{0},
                         [](Bytes sum, const Block& block) { return sum + block.requested; });
}

}  // namespace headroom
