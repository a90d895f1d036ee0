"""What every format's reader fills: a list of events, written as one Headroom trace file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable
from pathlib import Path

OUTSIDE_OPS = -1
MAXIMUM_BYTES = 1 << 62
MAXIMUM_STREAMS = 256


class FormatError(Exception):
    """What is wrong with the file, and where."""


class TraceBuilder:
    """Events in order of time. Blocks are known by whatever key the format has for them."""

    def __init__(self, allocator: str):
        self.allocator = allocator
        self.workload = ""
        self.capacity_bytes = 0
        self._columns: dict[str, list[int]] = {
            name: [] for name in ("kind", "stream", "id", "op", "requested_bytes", "time_ns")
        }
        self._live: dict[Hashable, tuple[int, int]] = {}  # key → id, bytes
        self._ids = 0
        self._ops: dict[str, int] = {}
        self._streams: dict[Hashable, int] = {}

    def alloc(self, key: Hashable, size: int, where: str, *, op="", stream: Hashable = 0, time_ns=0):
        """`where` names the place in the file, for errors."""
        _check_size(size, where)
        if key in self._live:
            raise FormatError(f"{where}: {key} is allocated while it is live")
        self._ids += 1
        self._live[key] = (self._ids, size)
        self._add(0, self._ids, size, op, stream, time_ns)

    def free(self, key: Hashable, where: str, *, op="", stream: Hashable = 0, time_ns=0):
        if key not in self._live:
            raise FormatError(f"{where}: {key} is freed but not live")
        number, size = self._live.pop(key)
        self._add(1, number, size, op, stream, time_ns)

    def oom(self, size: int, where: str, *, op="", stream: Hashable = 0, time_ns=0):
        """A request that was refused."""
        _check_size(size, where)
        self._add(2, 0, size, op, stream, time_ns)

    def is_live(self, key: Hashable) -> bool:
        return key in self._live

    def __len__(self) -> int:
        return len(self._columns["id"])

    def _add(self, kind: int, number: int, size: int, op: str, stream: Hashable, time_ns: int):
        place = self._streams.setdefault(stream, len(self._streams))
        if place >= MAXIMUM_STREAMS:
            raise FormatError(f"more than {MAXIMUM_STREAMS} streams")
        named = self._ops.setdefault(op, len(self._ops)) if op else OUTSIDE_OPS
        for name, value in zip(self._columns, (kind, place, number, named, size, time_ns)):
            self._columns[name].append(value)

    def write(self, path: Path):
        count = len(self)
        columns = {
            **self._columns,
            "role": [0] * count,
            "phase": [0] * count,
            "step": [0] * count,
            "size_bytes": self._columns["requested_bytes"],
            "address": [0] * count,
        }
        document = {
            "schema_version": "1.0.0",
            "header": {
                "device": "",
                "rules": "",
                "allocator": self.allocator,
                "workload": self.workload,
                "capacity_bytes": self.capacity_bytes,
            },
            "op_names": list(self._ops),
            "kinds": ["alloc", "free", "oom"],
            "roles": ["activation"],
            "phases": ["forward"],
            "columns": columns,
        }
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as stream:
            json.dump(document, stream, separators=(",", ":"))


def _check_size(size: int, where: str):
    if not 0 <= size <= MAXIMUM_BYTES:
        raise FormatError(f"{where}: {size} is no number of bytes")
