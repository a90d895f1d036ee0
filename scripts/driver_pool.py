#!/usr/bin/env python3
"""Records what the driver's pool behind cudaMallocAsync does with random requests.

scripts/driver_pool.py FILE.jsonl.gz

Each line is a run: its name, its release threshold, whether every request was followed by a synchronisation, and
its log. An entry of a log is what was asked (a: allocate, f: free), the key of the block, its bytes, its place
after the first one, and the chunks of 32 MiB that the pool then held. tests/virtual_gpu/identity/measured has such
a file of an H200, which harness/gpu_driver/driver_pool.h follows; another GPU or driver is compared by running
tests/virtual_gpu/identity/test_same_as_driver_pool.py on its file. Exit code: 2 no GPU or too little memory.
"""

import ctypes
import gzip
import json
import random
import sys

from driver_blocks import require, runtime

MIB = 1 << 20
THRESHOLD, HELD = 4, 5  # cudaMemPoolAttr
KEEP_ALL = 2**64 - 1


def small(rng):
    return rng.choice([512, 1024, 4096, 100_000, rng.randrange(1, MIB)])


def large(rng):
    return rng.randrange(1, 200) * MIB + rng.choice([0, 0, 512, rng.randrange(MIB)])


def mixed(rng):
    return small(rng) if rng.random() < 0.6 else large(rng)


def requests(seed, count, size_of, most):
    """Random requests, of which at most about `most` bytes live at once."""
    rng, live, total = random.Random(seed), [], 0
    for number in range(count):
        if live and (rng.random() < 0.48 or total > most):
            key, size = live.pop(rng.randrange(len(live)))
            total -= size
            yield "f", key, size
        else:
            size = size_of(rng)
            live.append((number, size))
            total += size
            yield "a", number, size


RUNS = {  # name: requests, release threshold
    **{f"small {seed}": (seed, 1500, small, MIB << 8, KEEP_ALL) for seed in (1, 2)},
    **{f"large {seed}": (seed, 400, large, MIB << 13, KEEP_ALL) for seed in (1, 2)},
    **{f"mixed {seed}": (seed, 1500, mixed, MIB << 12, KEEP_ALL) for seed in (1, 2, 3, 4)},
    "mixed 1 threshold 0": (1, 600, mixed, MIB << 12, 0),
}


class Pool:
    def __init__(self, cuda):
        self.cuda, self.handle = cuda, ctypes.c_void_p()
        require(cuda.cudaDeviceGetDefaultMemPool(ctypes.byref(self.handle), 0), "its pool")

    def held(self):
        value = ctypes.c_uint64()
        require(self.cuda.cudaMemPoolGetAttribute(self.handle, HELD, ctypes.byref(value)), "to tell what it holds")
        return value.value

    def replay(self, sequence, threshold):
        limit, blocks, first, log = ctypes.c_uint64(threshold), {}, None, []
        self.cuda.cudaMemPoolSetAttribute(self.handle, THRESHOLD, ctypes.byref(limit))
        for what, key, size in sequence:
            place = 0
            if what == "a":
                block = blocks[key] = ctypes.c_void_p()
                status = self.cuda.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(size), None)
                require(status, f"{size} bytes")
                first = block.value if first is None else first
                place = block.value - first
            else:
                require(self.cuda.cudaFreeAsync(blocks.pop(key), None), "to take a block back")
            self.cuda.cudaDeviceSynchronize()
            log.append([what, key, size, place, self.held() >> 25])
        for block in blocks.values():
            self.cuda.cudaFreeAsync(block, None)
        self.cuda.cudaDeviceSynchronize()
        self.cuda.cudaMemPoolTrimTo(self.handle, ctypes.c_size_t(0))
        return log


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    cuda = runtime()
    require(cuda.cudaFree(None), "to start")
    pool = Pool(cuda)
    with gzip.open(sys.argv[1], "wt") as out:
        for name, (seed, count, size_of, most, threshold) in RUNS.items():
            log = pool.replay(requests(seed, count, size_of, most), threshold)
            print(f"{name}: held at most {max(entry[4] for entry in log)} chunks of 32 MiB")
            run = {"name": name, "threshold": threshold, "synchronised": True, "log": log}
            print(json.dumps(run, separators=(",", ":")), file=out)


if __name__ == "__main__":
    main()
