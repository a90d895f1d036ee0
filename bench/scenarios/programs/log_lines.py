"""Writes 50,000 log lines of 100 characters and looks at the growth of resident memory.

sink: none (filtered by level), file, pipe (one that is read), list (records kept in memory).
"""

import logging
import os
import tempfile
import threading

import meter

LINES = 50_000
given = meter.options(sink="file")


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(self.format(record))


def drain(descriptor):
    while os.read(descriptor, 1 << 16):
        pass


def handler():
    if given["sink"] == "list":
        return Keep()
    if given["sink"] == "pipe":
        reading, writing = os.pipe()
        threading.Thread(target=drain, args=(reading,), daemon=True).start()
        return logging.StreamHandler(os.fdopen(writing, "w"))
    return logging.StreamHandler(tempfile.TemporaryFile("w"))


log = logging.getLogger("steps")
log.propagate = False
log.addHandler(handler())
log.setLevel(logging.ERROR if given["sink"] == "none" else logging.INFO)
log.info("warm-up %s", "x" * 80)
before = meter.resident()
meter.restart_peak()
for step in range(LINES):
    log.info("step %08d %s", step, "x" * 80)
meter.report(
    resident_growth_bytes=meter.resident() - before, peak_growth_bytes=meter.peak() - before
)
