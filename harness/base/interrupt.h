// Ctrl-C asks, it does not kill: whoever works in a loop looks here and leaves in good order.
#pragma once

namespace headroom {

// From now on SIGINT and SIGTERM are remembered instead of ending the process.
void catch_interrupts();
bool interrupt_requested();

}  // namespace headroom
