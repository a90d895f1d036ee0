"""Reads a file of 128 MiB once, as an epoch does, and looks at the peak of resident memory.

case: load (all records in a list, then a loop), stream (a generator that reads record by record),
over_list (a generator over a list that is loaded already, as the source's code does).
"""

import tempfile
import time

import meter

RECORD = 1 << 20
RECORDS = 128
given = meter.options(case="load")


def stream(file):
    while record := file.read(RECORD):
        yield record


def over_list(records):
    yield from records


def records_of(file):
    if given["case"] == "stream":
        return stream(file)
    loaded = list(stream(file))
    return over_list(loaded) if given["case"] == "over_list" else loaded


with tempfile.TemporaryFile() as file:
    for i in range(RECORDS):
        file.write(bytes([i]) * RECORD)
    file.seek(0)
    before = meter.resident()
    meter.restart_peak()
    start = time.monotonic_ns()
    total = sum(record[0] for record in records_of(file))
    elapsed = time.monotonic_ns() - start
    grown = meter.peak() - before
meter.report(
    why_not_engaged="" if total == sum(range(RECORDS)) else "not every record was read",
    peak_growth_bytes=grown,
    elapsed_ns=elapsed,
)
