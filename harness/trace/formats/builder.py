"""The readers of all formats pass their events to this builder, which writes a Headroom trace file."""

from __future__ import annotations

from collections.abc import Hashable
from typing import BinaryIO

from harness.trace.file import TraceWriter

MAXIMUM_BYTES = 1 << 62
MAXIMUM_STREAMS = 256
EVENTS_AT_ONCE = 1 << 16

KINDS = ("alloc", "free", "oom", "segment_alloc", "segment_free", "segment_map", "segment_unmap")
ROLES = (
    "activation",
    "input",
    "weight",
    "statistic",
    "gradient",
    "optimizer_state",
    "activation_gradient",
    "workspace",
    "result",
)
PHASES = ("forward", "load", "backward", "update", "evaluate", "initialize", "discriminator", "generator")
OUTSIDE_OPS = -1


class FormatError(Exception):
    """Says what is wrong with a file, and at which place."""


class TraceBuilder:
    """Takes events in order of time. A format may identify its blocks by any key. `where` names the place in
    the file for errors; `context` holds further known facts about an event: op, role, phase, step, stream,
    time_ns."""

    def __init__(self, stream: BinaryIO, allocator: str):
        self.header: dict[str, str | int] = {"allocator": allocator}  # fixed with the first event
        self.events = 0
        self._stream = stream
        self._writer: TraceWriter | None = None
        self._rows: list[tuple[int, ...]] = []
        self._live: dict[Hashable, tuple[int, int, int, int]] = {}  # key → id, bytes, address, role
        self._blocks = 0
        self._ops: dict[str, int] = {}
        self._new_ops: list[str] = []
        self._streams: dict[Hashable, int] = {}

    def alloc(self, key: Hashable, size: int, where: str, *, address=0, **context):
        check_number(size, where)
        if key in self._live:
            raise FormatError(f"{where}: {key} is allocated while it is live")
        self._blocks += 1
        role = ROLES.index(context.pop("role", "activation"))
        self._live[key] = (self._blocks, size, address, role)
        self._add("alloc", self._blocks, size, address, role, **context)

    def free(self, key: Hashable, where: str, **context):
        if key not in self._live:
            raise FormatError(f"{where}: {key} is freed but not live")
        number, size, address, role = self._live.pop(key)
        context.pop("role", None)  # the block's role was recorded when it was allocated
        self._add("free", number, size, address, role, **context)

    def oom(self, size: int, where: str, *, role="activation", **context):
        """Records a request that was refused."""
        check_number(size, where)
        self._add("oom", 0, size, 0, ROLES.index(role), slack=-size, **context)

    def segment(self, kind: str, number: int, address: int, size: int, where: str, **context):
        check_number(size, where)
        self._add(kind, number, size, address, ROLES.index(context.pop("role", "workspace")), **context)

    def is_live(self, key: Hashable) -> bool:
        return key in self._live

    def finish(self):
        self._flush()
        self._writer.finish()

    def _add(
        self, kind, number, size, address, role, *,
        op="", phase="forward", step=0, stream: Hashable = 0, time_ns=0, slack=0,
    ):  # fmt: skip
        place = self._streams.setdefault(stream, len(self._streams))
        if place >= MAXIMUM_STREAMS:
            raise FormatError(f"more than {MAXIMUM_STREAMS} streams")
        if op and op not in self._ops:
            self._ops[op] = len(self._ops)
            self._new_ops.append(op)
        named = self._ops[op] if op else OUTSIDE_OPS
        self._rows.append(
            (KINDS.index(kind), role, PHASES.index(phase), place, number, named, step,
             size, size + slack, address, time_ns)
        )  # fmt: skip
        self.events += 1
        if len(self._rows) == EVENTS_AT_ONCE:
            self._flush()

    def _flush(self):
        if self._writer is None:
            self._writer = TraceWriter(self._stream, self.header, kinds=KINDS, roles=ROLES, phases=PHASES)
        try:
            self._writer.add_op_names(self._new_ops)
        except ValueError as error:
            raise FormatError(str(error)) from None
        self._new_ops = []
        if self._rows:
            names = ("kind", "role", "phase", "stream", "id", "op", "step")
            names += ("requested_bytes", "size_bytes", "address", "time_ns")
            self._writer.add(dict(zip(names, zip(*self._rows))))
        self._rows = []


def check_number(number: int, where: str) -> int:
    """Checks a number of bytes, an address or a time in nanoseconds."""
    if not 0 <= number <= MAXIMUM_BYTES:
        raise FormatError(f"{where}: {number if abs(number) < 1 << 70 else 'the number'} is implausibly large")
    return number


def pointer(text: str) -> int:
    """Returns the address of a pointer, or 0 if the pointer is only a name."""
    try:
        address = int(text, 0)
    except ValueError:
        return 0
    return address if 0 <= address <= MAXIMUM_BYTES else 0
