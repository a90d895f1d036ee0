#!/usr/bin/env python3
"""Measures what a GPU's driver takes for small blocks, and compares it with what others measured.

scripts/driver_blocks.py

Allocates 256 blocks of each size with cudaMalloc, asks cudaMemGetInfo before and after, and prints
the bytes that each block took. The published figures are of a driver of version 5xx
(github.com/JustVugg/colibri, dev_alloc_footprint). Where they hold, blocks of up to 1 MiB share
granules of 2 MiB, as harness/gpu_driver/small_blocks.h assumes. Exit code: 0 all as
published, 1 some differ, 2 no GPU or too little memory.
"""

import ctypes
import sys

KIB = 1024
PUBLISHED = {  # bytes of a block: bytes that it takes
    400: 8 * KIB, 3 * KIB: 8 * KIB, 4 * KIB: 8 * KIB, 10 * KIB: 16 * KIB, 16 * KIB: 16 * KIB,
    64 * KIB: 64 * KIB, 96 * KIB: 104 * KIB, 384 * KIB: 416 * KIB, 768 * KIB: 1024 * KIB,
    1024 * KIB: 1024 * KIB, 1536 * KIB: 2048 * KIB, 3072 * KIB: 4096 * KIB,
}  # fmt: skip
BLOCKS = 256


def runtime():
    for version in (13, 12):
        try:
            return ctypes.CDLL(f"libcudart.so.{version}")
        except OSError:
            pass
    print("scripts/driver_blocks.py: there is no libcudart.so.13 or .12; "
          "name the toolkit's folder in LD_LIBRARY_PATH", file=sys.stderr)  # fmt: skip
    sys.exit(2)


def require(status, doing):
    if status != 0:
        print(f"scripts/driver_blocks.py: CUDA refused {doing}: error {status}", file=sys.stderr)
        sys.exit(2)


def free_bytes(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    require(cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)), "to tell its free memory")
    return free.value


def measure(cuda, size):
    """Bytes that one of BLOCKS blocks of `size` takes."""
    before = free_bytes(cuda)
    blocks = [ctypes.c_void_p() for _ in range(BLOCKS)]
    for block in blocks:
        require(cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size)), f"{size} bytes")
    taken = before - free_bytes(cuda)
    for block in blocks:
        require(cuda.cudaFree(block), "to take a block back")
    kept = before - free_bytes(cuda)
    if kept != 0:
        print(f"{kept:,} B are not free again after blocks of {size:,} B")
    return taken // BLOCKS


def main():
    cuda = runtime()
    require(cuda.cudaFree(None), "to start")
    print(f"{'block':>12} {'takes':>12} {'published':>12}")
    found = {size: measure(cuda, size) for size in PUBLISHED}
    for size, taken in found.items():
        mark = "" if taken == PUBLISHED[size] else "  differs"
        print(f"{size:>10,} B {taken:>10,} B {PUBLISHED[size]:>10,} B{mark}")
    return 0 if found == PUBLISHED else 1


if __name__ == "__main__":
    sys.exit(main())
