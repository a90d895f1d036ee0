// Keeps a process away from the network.
#pragma once

namespace headroom {

// Forbids this process, and the programs that it starts, to open sockets: they get EACCES. Has no
// effect if the kernel lacks filters of system calls (seccomp), or on processors other than x86-64
// and AArch64. To be called while the process has one thread.
void forbid_network();

}  // namespace headroom
