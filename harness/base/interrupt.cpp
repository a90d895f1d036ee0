#include "harness/base/interrupt.h"

#include <csignal>

namespace headroom {
namespace {

volatile std::sig_atomic_t requested = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { requested = 1; };  // no SA_RESTART: waiting calls return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupt_requested() { return requested != 0; }

}  // namespace headroom
