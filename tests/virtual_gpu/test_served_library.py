"""The library that serves Headroom's allocators, called without PyTorch."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HEADROOM, MIB

LIBRARY = Path(HEADROOM).parent / "capture" / "libheadroom_allocator.so"
HOOK = Path(__file__).resolve().parents[2] / "harness" / "virtual_gpu" / "hook"
SERVE_REQUESTS = os.environ.get("SERVE_REQUESTS", "")
CAPACITY = 256 * MIB

# Runs in a process of its own, because a process has one allocator.
PRELUDE = f"""
import ctypes, random, sys, threading
sys.path.append({str(HOOK)!r})
import headroom_served
library = headroom_served.library = ctypes.CDLL({str(LIBRARY)!r})
library.headroom_allocate.restype = ctypes.c_void_p
library.headroom_figures.restype = ctypes.c_bool
def allocate(size):
    return library.headroom_allocate(ctypes.c_size_t(size), -1, None)
def free(block):
    library.headroom_free(ctypes.c_void_p(block), ctypes.c_size_t(0), -1, None)
"""


def run(program, allocator):
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program], capture_output=True, text=True, timeout=120,
        env={**os.environ, "HEADROOM_ALLOCATOR": allocator, "HEADROOM_ALLOCATOR_CAPACITY": str(CAPACITY)})
    return done


@pytest.mark.parametrize("allocator", ["caching", "bfc(growth=on)", "expandable", "buddy", "arena"])
def test_threads_never_share_a_byte(allocator):
    seed = random.randrange(2**32)
    done = run(f"""
def work(chance):
    live = []
    for turn in range(400):
        if live and chance.random() < 0.45:
            block, size, byte = live.pop(chance.randrange(len(live)))
            assert ctypes.string_at(block, size) == bytes([byte]) * size
            free(block)
        else:
            size, byte = int(2 ** (chance.random() * 16)) or 1, chance.randrange(256)
            block = allocate(size)
            ctypes.memset(block, byte, size)
            live.append((block, size, byte))
    for block, *_ in live:
        free(block)
threads = [threading.Thread(target=work, args=[random.Random({seed} + number)]) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
figures = headroom_served.figures_of(-1)
print(figures.now.requested, figures.now.allocated, figures.allocations - figures.frees)
""", allocator)
    assert done.stdout == "0 0 0\n", (seed, done.stderr)


@pytest.mark.parametrize("allocator", ["caching", "bfc(growth=on)", "expandable", "tlsf", "pool"])
def test_every_answer_is_that_of_the_strategy(allocator):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    live, requests, program = [], [], ["blocks = {}", "def told():",
                                       "    f = headroom_served.figures_of(-1)",
                                       "    print(f.now.allocated, f.now.reserved, f.segments)"]
    for key in range(600):
        if live and chance.random() < 0.45:
            gone = live.pop(chance.randrange(len(live)))
            requests.append(f"free {gone}")
            program.append(f"free(blocks.pop({gone})); told()")
        else:
            size = int(2 ** (chance.random() * 21)) or 1
            live.append(key)
            requests.append(f"allocate {key} {size} 0")
            program.append(f"blocks[{key}] = allocate({size}); told()")
    served = run("\n".join(program), allocator)
    lines = "\n".join([f"program meta(capacity={CAPACITY}) 0 {allocator}", *requests]) + "\n"
    alone = subprocess.run([SERVE_REQUESTS], input=lines, capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    figures = [" ".join(line.split()[-3:]) for line in alone.stdout.splitlines()]
    assert served.stdout.splitlines() == figures, (seed, served.stderr)


@pytest.mark.parametrize("program,complaint,status", [
    ("free(12345)", "the program freed a block that this allocator did not allocate", 70),
    ("allocate(1)", "unknown allocator", 2),
])
def test_a_mistake_ends_the_program_and_is_named(program, complaint, status):
    done = run(program, "caching" if status == 70 else "cashing")
    assert done.returncode == status
    assert complaint in done.stderr
