"""Histories as a strategy would leave them: segments, pages, blocks in them, a refusal."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

from harness.trace.formats.__main__ import convert
from harness.trace.formats.history import Event, History
from harness.trace.file import TraceWriter

MIB = 2**20
KINDS = ["alloc", "free", "segment_alloc", "segment_free", "oom", "segment_map", "segment_unmap"]
ROLES = ["weight", "activation", "workspace", "gradient"]
PHASES = ["initialize", "forward", "backward"]
OPS = ["conv1", "layer1.0.conv2", "fc"]
HEADER = {"device": "meta(capacity=1GiB)", "allocator": "made up", "capacity_bytes": 1024 * MIB}


class Recorder:
    """One row an event, in the order of time."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.rows: list[dict[str, int]] = []
        self.live: dict[int, dict[str, int]] = {}
        self.ids = 0
        self.time = 0

    def event(self, kind: str, **known: int) -> dict[str, int]:
        self.time += 1000 * self.random.randrange(500)
        row = {"kind": KINDS.index(kind), "role": 0, "phase": 0, "stream": 0, "id": 0, "op": -1, "step": 0}
        row |= {"requested_bytes": 0, "size_bytes": 0, "address": 0, "time_ns": self.time}
        self.rows.append(row | known)
        return self.rows[-1]

    def segment(self, kind: str, number: int, address: int, size: int) -> None:
        self.event(kind, id=number, role=2, address=address, requested_bytes=size, size_bytes=size)

    def alloc(self, address: int, room: int) -> None:
        self.ids += 1
        self.live[self.ids] = self.event(
            "alloc",
            id=self.ids,
            role=self.random.randrange(len(ROLES)),
            phase=self.random.randrange(len(PHASES)),
            op=self.random.randrange(-1, len(OPS)),
            step=self.random.randrange(3),
            requested_bytes=self.random.randrange(1, room + 1),
            size_bytes=room,
            address=address,
        )

    def free(self, number: int) -> None:
        same = ("id", "role", "requested_bytes", "size_bytes", "address")
        made = self.live.pop(number)
        self.event("free", **{key: made[key] for key in same}, phase=2, op=2, step=2)


def record(seed: int, events: int = 300) -> Recorder:
    """A segment and a reservation of 64 slots of 64 KiB each, filled and emptied at random; some
    blocks stay, and so do a quarter of the pages."""
    recorder = Recorder(seed)
    slot, slots = MIB // 16, 64
    plain, pages = 2 * MIB, 64 * MIB
    recorder.segment("segment_alloc", 1, plain, slots * slot)
    for page in range(4):
        recorder.segment("segment_map", 2, pages + page * MIB, MIB)
    places = [plain + index * slot for index in range(slots)] + [pages + index * slot for index in range(slots)]
    while len(recorder.rows) < events:
        used = {row["address"] for row in recorder.live.values()}
        if recorder.live and recorder.random.random() < 0.45:
            recorder.free(recorder.random.choice(sorted(recorder.live)))
        else:
            recorder.alloc(recorder.random.choice([place for place in places if place not in used]), slot)
    recorder.event("oom", requested_bytes=2048 * MIB, op=1, step=2, phase=1)
    for number, row in sorted(recorder.live.items()):
        if row["address"] >= pages + MIB:
            recorder.free(number)
    for page in range(1, 4):
        recorder.segment("segment_unmap", 2, pages + page * MIB, MIB)
    return recorder


def trace_bytes(rows: list[dict[str, int]], header: dict[str, Any] | None = None) -> bytes:
    file = io.BytesIO()
    writer = TraceWriter(file, HEADER | (header or {}), kinds=KINDS, roles=ROLES, phases=PHASES)
    writer.add_op_names(OPS)
    if rows:
        writer.add({name: [row[name] for row in rows] for name in rows[0]})
    writer.finish()
    return file.getvalue()


def write(path: Path, rows: list[dict[str, int]]) -> Path:
    path.write_bytes(trace_bytes(rows))
    return path


def events(path: Path) -> list[Event]:
    with path.open("rb") as stream:
        return list(History(stream).events())


def there_and_back(path: Path, target: str) -> list[Event]:
    """The events of a trace after it was written as another format and read again."""
    other = path.with_suffix(f".{target}")
    back = path.with_suffix(f".{target}.hrtrace")
    convert(path, other, target)
    convert(other, back, "headroom")
    return events(back)
