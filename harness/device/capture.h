// Interface of devices that can capture a Program once and replay it by queueing all ops at once. A
// compiled Program that is not a CapturingProgram runs its ops one after another each time.
#pragma once

#include <memory>
#include <span>

#include "harness/device/device.h"

namespace headroom {

// All ops of a Program with operands at fixed addresses.
class CapturedProgram {
 public:
  virtual ~CapturedProgram() = default;
  virtual void run() = 0;
};

class CapturingProgram : public CompiledProgram {
 public:
  // Takes `buffers` of every op, whose addresses must stay valid for as long as the result is used;
  // this object must outlive the result, too. Nothing is run.
  virtual std::unique_ptr<CapturedProgram> capture(std::span<const OpBuffers> buffers) = 0;
};

}  // namespace headroom
