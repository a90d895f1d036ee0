// Decides when the work of a Program is captured and when the capture is launched. It drives an
// interface rather than CUDA itself, so that it can be tested without a GPU.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/capture.h"

namespace headroom {

// All functions except abandon() throw DeviceError when CUDA refuses the call.
class GraphDriver {
 public:
  virtual ~GraphDriver() = default;
  virtual void begin() = 0;             // work queued from now on is captured, not run
  virtual void end() = 0;               // ends the capture
  virtual void abandon() noexcept = 0;  // ends a capture that failed
  virtual void launch() = 0;            // runs the captured work
};

// The first call of run() queues the work normally: libraries load their kernels then, which may
// make the driver wait, and waiting is forbidden during a capture. The second call captures the
// work, and every later call launches the capture. Throws NotSupported with the reason when the
// work cannot be captured.
class GraphReplay final : public CapturedProgram {
 public:
  // `queue` must queue the same work with the same addresses each time.
  GraphReplay(std::unique_ptr<GraphDriver> driver, std::function<void()> queue);
  void run() override;

 private:
  void capture();

  enum class Stage { fresh, warm, captured };
  std::unique_ptr<GraphDriver> driver_;
  std::function<void()> queue_;
  Stage stage_ = Stage::fresh;
};

}  // namespace headroom
