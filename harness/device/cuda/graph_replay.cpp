#include "harness/device/cuda/graph_replay.h"

#include <string>

#include "harness/base/error.h"

namespace headroom {

GraphReplay::GraphReplay(std::unique_ptr<GraphDriver> driver, std::function<void()> queue)
    : driver_(std::move(driver)), queue_(std::move(queue)) {}

void GraphReplay::run() {
  if (stage_ == Stage::fresh) {
    queue_();
    stage_ = Stage::warm;
    return;
  }
  if (stage_ == Stage::warm) capture();
  driver_->launch();
}

void GraphReplay::capture() {
  try {
    driver_->begin();
    queue_();
    driver_->end();
  } catch (const Error& error) {
    driver_->abandon();
    throw NotSupported(
        std::string("execution=captured: this step cannot be captured as a CUDA graph; use "
                    "execution=last_use: ") +
        error.what());
  }
  stage_ = Stage::captured;
}

}  // namespace headroom
