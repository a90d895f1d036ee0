#include "harness/base/interrupt.h"

#include <csignal>

#include "harness/base/error.h"

namespace headroom {
namespace {

volatile std::sig_atomic_t requested = 0;

void remember(int) { requested = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = remember;  // without SA_RESTART, so that blocking calls return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void stop_catching_interrupts() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  requested = 0;
}

bool interrupt_requested() { return requested != 0; }

InterruptsCaught::InterruptsCaught() {
  struct sigaction action {};
  action.sa_handler = remember;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Signals that are already ignored, as under nohup, stay ignored.
    if (before_[i].sa_handler == SIG_DFL) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptsCaught::~InterruptsCaught() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

void InterruptsCaught::check() const {
  if (interrupt_requested() && before_.front().sa_handler != remember)
    throw Interrupted("interrupted");
}

}  // namespace headroom
