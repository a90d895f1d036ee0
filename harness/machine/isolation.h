// These functions restrict a process that reads files of other people: its network and its memory.
#pragma once

namespace headroom {

// Forbids this process, and the programs that it starts, to open sockets: they get EACCES. Has no
// effect if the kernel lacks filters of system calls (seccomp), or on processors other than x86-64
// and AArch64. To be called while the process has one thread.
void forbid_network();

// Limits the memory that this process, and each program that it starts, may allocate to what is
// available now: a file may ask for any amount. Beyond it, they get std::bad_alloc.
void bound_memory();

}  // namespace headroom
