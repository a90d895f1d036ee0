// Ctrl-C is a request, not a kill: loops poll for it and finish in a consistent state.
#pragma once

#include <array>
#include <csignal>

namespace headroom {

// From now on, SIGINT and SIGTERM are recorded instead of ending the process.
void catch_interrupts();
// Undoes catch_interrupts() and forgets the request: the next signal ends the process.
void stop_catching_interrupts();
bool interrupt_requested();

// For the lifetime of this object, SIGINT, SIGTERM and SIGHUP are recorded wherever they would end
// the process. The destructor restores the previous handlers.
class InterruptsCaught {
 public:
  InterruptsCaught();
  ~InterruptsCaught();
  InterruptsCaught(const InterruptsCaught&) = delete;
  InterruptsCaught& operator=(const InterruptsCaught&) = delete;
  // Throws Interrupted when a signal arrived, unless an outer scope records signals and will check
  // for them itself.
  void check() const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace headroom
