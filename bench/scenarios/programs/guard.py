"""A guard around blocks of code, and blocks that misuse memory in known ways: which does it see?

policy: end (memory at the end less at the start, as the source has it), peak (highest less start),
slope (straight line over the ends of the last 10 of 12 blocks). block: leak (keeps 16 MiB),
slow_leak (keeps 1 MiB), spike (64 MiB for a moment), sound (takes and gives back 4 MiB). The guard's
limit is 8 MiB, over 12 blocks for the slope. Leaked memory is kept until the end: if it were freed,
the next block could take it without growth.
"""

import random

import meter

LIMIT = 8 << 20
BLOCKS = 12
ROUNDS = 3
KEEPS = {"leak": 16 << 20, "slow_leak": 1 << 20, "spike": 0, "sound": 0}
TAKES = {"leak": 0, "slow_leak": 0, "spike": 64 << 20, "sound": 4 << 20}
given = meter.options(policy="end", block="leak")
chance = random.Random(given["seed"])
kept = []


def touched(size):
    return bytearray(b"x") * size


def block(kind):
    passing = touched(TAKES[kind] + chance.randrange(1, 1 << 16))
    if KEEPS[kind]:
        kept.append(touched(KEEPS[kind]))
    del passing


def growth_of_one(kind):
    start = meter.resident()
    meter.restart_peak()
    block(kind)
    return (meter.peak() if given["policy"] == "peak" else meter.resident()) - start


def alarm(kind):
    if given["policy"] == "slope":
        ends = []
        for _ in range(BLOCKS):
            block(kind)
            ends.append(meter.resident())
        return meter.slope(ends[2:]) * BLOCKS > LIMIT
    return growth_of_one(kind) > LIMIT


block("sound")  # the first call has a cost of its own, which is no growth
alarms = sum(alarm(given["block"]) for _ in range(ROUNDS)) / ROUNDS
name = "false_alarm_rate" if given["block"] == "sound" else "detection_rate"
meter.report(**{name: alarms})
