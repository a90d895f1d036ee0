"""The writers of all formats read a trace file through this module, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from harness.trace.file import TraceFileError, TraceReader

BLOCK_KINDS = ("alloc", "free", "oom")
MADE_UP_BASE = 1 << 40
ALIGNMENT = 512


class Event(NamedTuple):
    kind: str
    role: str
    phase: str
    stream: int
    id: int
    op: str  # name of the op; "" outside ops
    op_index: int
    step: int
    requested: int
    size: int
    address: int
    time_ns: int


class History:
    """A trace that can be read several times. All methods raise TraceFileError if the file is damaged or
    frees a block that is not live."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self.header = self._reader().header

    def _reader(self) -> TraceReader:
        self._stream.seek(0)
        return TraceReader(self._stream)

    def is_placed(self) -> bool:
        """Whether the trace contains the addresses of its blocks."""
        allocs = [index for index, kind in enumerate(self.header["kinds"]) if kind == "alloc"]
        for chunk in self._reader():
            for index in allocs:
                if ((chunk["kind"] == index) & (chunk["address"] == 0)).any():
                    return False
        return True

    def events(self) -> Iterator[Event]:
        """Yields the events without blocks of zero bytes. If the trace has no addresses, they are made up."""
        reader = self._reader()
        kinds, roles, phases = (reader.header[table] for table in ("kinds", "roles", "phases"))
        made_up = None if self.is_placed() else _MadeUpAddresses()
        reader = self._reader()
        live: dict[int, int] = {}  # id → bytes
        number = 0
        for chunk in reader:
            names = reader.op_names
            order = ("kind", "role", "phase", "stream", "id", "op", "step")
            order += ("requested_bytes", "size_bytes", "address", "time_ns")
            for kind, role, phase, stream, key, op, step, requested, size, address, time in zip(
                *(chunk[name].tolist() for name in order)
            ):
                number += 1
                kind = kinds[kind]
                if min(requested, size, address, time) < 0:
                    raise TraceFileError(f"event {number} has numbers beyond 2^63")
                if kind in ("alloc", "free"):
                    requested = _follow(live, kind, key, requested, number)
                    if requested == 0:
                        continue
                    if made_up is not None:
                        address = made_up.of(kind, key, max(requested, size))
                name = names[op] if 0 <= op < len(names) else ""
                yield Event(
                    kind, roles[role], phases[phase], stream, key, name, op, step, requested, size, address, time
                )

    def blocks(self) -> Iterator[Event]:
        """Yields the events without those of segments."""
        return (event for event in self.events() if event.kind in BLOCK_KINDS)


def _follow(live: dict[int, int], kind: str, key: int, requested: int, number: int) -> int:
    """Returns the event that allocated the block."""
    if kind == "free":
        if key not in live:
            raise TraceFileError(f"event {number}: block {key} is freed but not live")
        return live.pop(key)
    if key in live:
        raise TraceFileError(f"event {number}: block {key} is allocated while it is live")
    live[key] = requested
    return requested


class _MadeUpAddresses:
    """Makes up addresses: no two live blocks share bytes, and a freed place serves the next block of its
    size."""

    def __init__(self):
        self._next = MADE_UP_BASE
        self._idle: dict[int, list[int]] = {}
        self._live: dict[int, tuple[int, int]] = {}  # id → address, size

    def of(self, kind: str, key: int, size: int) -> int:
        if kind == "free":
            address, size = self._live.pop(key)
            self._idle.setdefault(size, []).append(address)
            return address
        idle = self._idle.get(size)
        address = idle.pop() if idle else self._next
        if address == self._next:
            self._next += -(-size // ALIGNMENT) * ALIGNMENT
        self._live[key] = (address, size)
        return address
