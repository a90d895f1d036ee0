"""Takes about 128 MiB, frees it, and measures how much of it goes back to the system.

case: large (one array), small (many objects), cycles (objects that refer to each other), scattered
(many objects of which one in a hundred stays), referenced (the array is still held elsewhere).
collect=on: gc.collect() after del. trim=on: malloc_trim() after that.
"""

import ctypes
import gc

import meter

TAKEN = 128 << 20
given = meter.options(case="large", collect="on", trim="off")


class Node:
    def __init__(self):
        self.payload = bytes(1000)
        self.itself = self


def take(case):
    if case in ("large", "referenced"):
        return bytearray(b"x") * TAKEN
    if case == "cycles":
        return [Node() for _ in range(TAKEN // 1200)]
    # Larger than the 512 bytes that Python's own allocator serves, so that the C heap serves them.
    return [bytes(1000) for _ in range(TAKEN // 1040)]


gc.disable()  # only what the case names may free memory
before = meter.resident()
data = take(given["case"])
full = meter.resident()
kept = data if given["case"] == "referenced" else None
if given["case"] == "scattered":
    kept = data[::100]
del data
if given["collect"] == "on":
    gc.collect()
if given["trim"] == "on":
    ctypes.CDLL(None).malloc_trim(0)
after = meter.resident()
taken = full - before
meter.report(
    why_not_engaged="" if taken > TAKEN // 2 else f"only {taken} bytes were taken",
    returned_share=(full - after) / max(taken, 1),
    resident_growth_bytes=after - before,
    peak_growth_bytes=taken,
)
