// The memory that captured Programs hold from before the first step: one shared block, as large as
// the largest need, or one block for each Program.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "harness/execution/pool_plan.h"
#include "harness/memory/allocator.h"

namespace headroom {

class CapturePools {
 public:
  struct Place {
    PoolPlan plan;
    Block device, host;  // at least as large as planned
  };

  // Allocates the pools of those `programs` that are captured. `host_side` is null if nothing is
  // offloaded. On OutOfMemory nothing stays allocated. All arguments must outlive this.
  CapturePools(std::span<const Program* const> programs, Allocator& allocator,
               Allocator* host_side);
  ~CapturePools();
  CapturePools(const CapturePools&) = delete;
  CapturePools& operator=(const CapturePools&) = delete;

  // Null for a Program that is not captured.
  const Place* of(const Program& program) const;
  Bytes bytes() const;  // requested on the device

 private:
  // Allocates the device and host blocks of a pool called `name`.
  void take(const std::string& name, const std::vector<const Program*>& programs);
  void give_back();

  Allocator& allocator_;
  Allocator* host_side_;
  std::map<const Program*, Place> places_;
  std::vector<Block> device_, host_;
};

}  // namespace headroom
