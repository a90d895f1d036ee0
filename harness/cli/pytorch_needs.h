// headroom plan --pytorch trains a planned network in PyTorch on the virtual GPU. The bytes are
// those of PyTorch's own code and allocator; nothing is timed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/base/units.h"
#include "harness/plan/cell.h"

namespace headroom {

struct PytorchNeeds {
  std::string engine;                        // "PyTorch 2.15.0"
  bool trained = false;                      // false: it ran out of memory
  std::string note;                          // "" or what happened
  std::optional<Bytes> allocated, reserved;  // peaks; absent if it ran out of memory
  std::map<std::string, Bytes> roles;        // bytes at the allocated peak, by Headroom's role
};

// Trains the network of `cell` on the card of its device for so many steps, in a process of its own
// (bench/frameworks). Throws InputError if that has no counterpart there, and NotSupported with a
// remedy if `scripts/setup --with pytorch` has not been run.
PytorchNeeds needs_of_pytorch(const Cell& cell, int steps);

}  // namespace headroom
