"""Bounds on a process that reads a file from somebody else: memory, processor time, and calls of the
kernel."""

from __future__ import annotations

import ctypes
import errno
import platform
import resource
import signal
import struct
from pathlib import Path

# The constants come from the kernel's headers: audit.h, filter.h, prctl.h, seccomp.h, and the tables of unistd.h.
ARCHITECTURES = {
    "x86_64": (0xC000003E, {"socket": 41, "execve": 59, "ptrace": 101, "execveat": 322, "io_uring_setup": 425}),
    "aarch64": (0xC00000B7, {"socket": 198, "execve": 221, "ptrace": 117, "execveat": 281, "io_uring_setup": 425}),
}
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
CALL_NUMBER, ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
OTHER_NUMBERS = 0x40000000  # the calls of x32, by which all of them could be had again
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 1, 22, 38, 2


def bound_time(path: Path):
    """Seconds of the processor: keys that collide in a table make a small file take hours."""
    size = path.stat().st_size
    limit = 60 + size // 2**17
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def bound_memory(path: Path, own: bool):
    """A file may ask for what it likes; it gets at most what files of its length can need. A trace
    of Headroom's own is compressed: a byte of it stands for events."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    size = path.stat().st_size
    limit = in_use + (4 * 2**30 + 4000 * size if own else 512 * 2**20 + 200 * size)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def _prctl(option: int, *arguments: int):
    call = ctypes.CDLL(None).prctl
    call.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
    call(option, *arguments, *(4 - len(arguments)) * [0])


def end_with_parent():
    """Even where the parent is killed: an orphan would write beside whoever tries again."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def forbid_programs_and_network():
    """Refuses this process, from now on, new sockets and other programs. Where the kernel has no
    such filter, or the machine is of another architecture, nothing changes."""
    if platform.machine() not in ARCHITECTURES:
        return
    architecture, calls = ARCHITECTURES[platform.machine()]
    steps = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, REFUSE),
             (LOAD, 0, 0, CALL_NUMBER), (JUMP_IF_AT_LEAST, 0, 1, OTHER_NUMBERS), (RETURN, 0, 0, REFUSE)]  # fmt: skip
    for number in calls.values():
        steps += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    steps.append((RETURN, 0, 0, ALLOW))
    program = _Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_SECCOMP, FILTER, ctypes.addressof(program))
