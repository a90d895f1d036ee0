// Ctrl-C asks, it does not kill: whoever works in a loop looks here and leaves in good order.
#pragma once

#include <array>
#include <csignal>

namespace headroom {

// From now on SIGINT and SIGTERM are remembered instead of ending the process.
void catch_interrupts();
bool interrupt_requested();

// While it lives, SIGINT, SIGTERM and SIGHUP are remembered, too, where they would end the process;
// afterwards they do what they did before.
class InterruptsCaught {
 public:
  InterruptsCaught();
  ~InterruptsCaught();
  InterruptsCaught(const InterruptsCaught&) = delete;
  InterruptsCaught& operator=(const InterruptsCaught&) = delete;
  // Throws Interrupted when one came, unless somebody further out remembers them and will look.
  void check() const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace headroom
