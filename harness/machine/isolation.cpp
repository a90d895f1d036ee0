#include "harness/machine/isolation.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "harness/machine/process_memory.h"

namespace headroom {

#if defined(__x86_64__) || defined(__aarch64__)
void forbid_network() {
#ifdef __x86_64__
  constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#else
  constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  constexpr unsigned kOtherNumbers = 0x40000000;  // x32's calls, a way around the filter
  constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EACCES;
  // io_uring opens sockets without that call. The numbers behind a comparison tell how many
  // instructions to skip if it holds, and if not.
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOtherNumbers, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kRefuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(steps), .filter = steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
void forbid_network() {}
#endif

void bound_memory() {
  const Bytes available = available_memory();
  rlimit limit{};
  if (available == 0 || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, read_residency().writable + available);
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace headroom
