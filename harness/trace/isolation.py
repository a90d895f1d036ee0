"""Limits a process that reads files of other people: its memory, its processor time and its system calls."""

from __future__ import annotations

import ctypes
import errno
import platform
import resource
import select
import signal
import struct
import sys
from pathlib import Path

# The constants come from the kernel's headers: audit.h, filter.h, prctl.h, seccomp.h, and the tables of unistd.h.
ARCHITECTURES = {
    "x86_64": (0xC000003E, {"socket": 41, "execve": 59, "ptrace": 101, "execveat": 322, "io_uring_setup": 425}),
    "aarch64": (0xC00000B7, {"socket": 198, "execve": 221, "ptrace": 117, "execveat": 281, "io_uring_setup": 425}),
}
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
CALL_NUMBER, ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
OTHER_NUMBERS = 0x40000000  # the x32 calls, which would be a way around the filter
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 1, 22, 38, 2


def bound_time(limit: int):
    """Limits the seconds of processor time. Without a limit, a small file with colliding hash keys could take
    hours."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def bound_memory(more: int):
    """Limits the bytes of address space to those in use and `more`; a file may request any amount."""
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more
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
    """Ends this process when its parent is killed. Otherwise it would write beside the next attempt."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A parent that was killed while this process was starting sends no signal, but nobody reads its pipe any more.
    output = select.poll()
    output.register(sys.stdout, 0)
    if output.poll(0):
        sys.exit("the program that asked for this was killed")


def forbid_programs_and_network():
    """Forbids this process to open sockets and to start other programs. Has no effect if the kernel lacks
    such filters or the machine is of an unlisted architecture."""
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
