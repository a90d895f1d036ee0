// The memory that captured Programs keep from before the first step on: one block of a strategy for
// all of them, as large as the one that needs most, or one for each.
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

  // Takes what the captured ones of `programs` need; `host_side` is null where nothing is
  // offloaded. On OutOfMemory it holds nothing. All of them must outlive this.
  CapturePools(std::span<const Program* const> programs, Allocator& allocator,
               Allocator* host_side);
  ~CapturePools();
  CapturePools(const CapturePools&) = delete;
  CapturePools& operator=(const CapturePools&) = delete;

  // Null for one that is not captured.
  const Place* of(const Program& program) const;
  Bytes bytes() const;  // on the device, as asked for

 private:
  // Of both sides, for a pool known by `name`.
  void take(const std::string& name, const std::vector<const Program*>& programs);
  void give_back();

  Allocator& allocator_;
  Allocator* host_side_;
  std::map<const Program*, Place> places_;
  std::vector<Block> device_, host_;
};

}  // namespace headroom
