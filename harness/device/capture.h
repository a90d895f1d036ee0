// What a device may offer for Programs that are captured and replayed: to queue all ops at once.
// Where a compiled Program is no CapturingProgram, its ops are run one after another each time.
#pragma once

#include <memory>
#include <span>

#include "harness/device/device.h"

namespace headroom {

// All ops of a Program with operands that never move.
class CapturedProgram {
 public:
  virtual ~CapturedProgram() = default;
  virtual void run() = 0;
};

class CapturingProgram : public CompiledProgram {
 public:
  // `buffers` of every op, which must stay as they are for as long as the result is used; so must
  // this. Nothing is run.
  virtual std::unique_ptr<CapturedProgram> capture(std::span<const OpBuffers> buffers) = 0;
};

}  // namespace headroom
