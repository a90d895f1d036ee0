// When what a Program queues is captured, and when the capture is launched instead: over a driver
// that is told step by step. Apart from CUDA, so that it is tested where there is none.
#pragma once

#include <functional>
#include <memory>

#include "harness/device/capture.h"

namespace headroom {

// All but abandon() throw DeviceError when CUDA refuses.
class GraphDriver {
 public:
  virtual ~GraphDriver() = default;
  virtual void begin() = 0;             // what is queued from now on is captured, and not run
  virtual void end() = 0;               // and no longer
  virtual void abandon() noexcept = 0;  // as end(), of what could not be captured
  virtual void launch() = 0;            // what was captured
};

// The first run queues the work as it is: libraries load their kernels then, for which the driver
// may have to wait, as nobody may while a stream captures. The second captures it, and that is
// launched from then on. Throws NotSupported with the reason where it cannot be captured.
class GraphReplay final : public CapturedProgram {
 public:
  // `queue` queues the same work with the same addresses each time.
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
