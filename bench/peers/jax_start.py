#!/usr/bin/python3
"""Measures the start of JAX: seconds from the import to the first array on the GPU, and the bytes
of the GPU that this takes, according to the driver's own tool. Prints one JSON object; `scripts/peer
--device cuda` runs it under each setting of XLA's allocator. Without that tool, or with several
GPUs, the bytes are null.
"""

import json
import subprocess
import time


def used_bytes():
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.check_output(command, text=True).split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(lines[0]) * 2**20 if len(lines) == 1 and lines[0].isdigit() else None


def main():
    before = used_bytes()
    start = time.perf_counter()
    import jax.numpy  # here: importing is part of starting

    jax.numpy.zeros(1).block_until_ready()
    seconds = time.perf_counter() - start
    after = used_bytes()
    gone = None if before is None or after is None else after - before
    print(json.dumps({"jax": jax.__version__, "start_seconds": seconds, "device_bytes": gone}))


if __name__ == "__main__":
    main()
