"""Writes PyTorch's memory snapshot as torch.cuda.memory._snapshot returns it, in a pickle of protocol 4,
which PyTorch's memory_viz reads.

The viewer starts from `segments`, the state at the end, and goes backwards through `device_traces`. Every
block must always lie in a segment, and blocks must fill their segment without gaps."""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, BinaryIO

from .address_ranges import AddressRanges
from .builder import FormatError
from .history import BLOCK_KINDS, Event, History

MAXIMUM_EVENTS = 4_000_000  # the pickle is written as a whole, and no viewer shows more events
SMALL_SEGMENT = 2 * 2**20
DEVICE = 0

Range = tuple[int, int]  # address, bytes


def write(history: History, stream: BinaryIO):
    """Writes the history. Raises FormatError for more than MAXIMUM_EVENTS events."""
    covered, whole = _survey(history)
    segments = _Segments() if covered else _OneSegment(*whole)
    frames = _Frames()
    capacity = history.header["capacity_bytes"]
    trace: list[dict[str, Any]] = []
    live: dict[int, tuple[Event, list]] = {}
    for event in history.events():
        if event.kind not in BLOCK_KINDS and not covered:
            continue
        where = frames.of(event)
        trace += _entries(event, where, max(0, capacity - segments.reserved))
        if event.kind == "alloc":
            live[event.id] = (event, where)
        elif event.kind == "free":
            del live[event.id]
        elif event.kind != "oom":
            segments.follow(event)
    blocks = _Blocks(live.values())
    snapshot = {
        "segments": [_segment(at, size, expandable, blocks) for at, size, expandable in segments.ranges()],
        "device_traces": [trace],
        "allocator_settings": {"written_by": "headroom", **_settings(history.header)},
        "external_annotations": [],
    }
    pickle.dump(snapshot, stream, protocol=4)


def _survey(history: History) -> tuple[bool, Range]:
    """Returns whether each block lies in recorded segments, and the range of the blocks' addresses."""
    mapped = AddressRanges()
    low, high, covered = 1 << 62, 0, True
    for number, event in enumerate(history.events()):
        if number == MAXIMUM_EVENTS:
            raise FormatError(f"has more than {MAXIMUM_EVENTS:,} events, too many for a snapshot")
        begin, end = event.address, event.address + event.size
        if event.kind in ("segment_alloc", "segment_map"):
            mapped.add(begin, end)
        elif event.kind in ("segment_free", "segment_unmap"):
            mapped.remove(begin, end)
        elif event.kind == "alloc":
            covered = covered and mapped.hold(begin, end)
            low, high = min(low, begin), max(high, end)
    return covered, (low, max(0, high - low))


class _Segments:
    """The segments after the events read so far."""

    def __init__(self):
        self.reserved = 0
        self._plain: dict[int, int] = {}
        self._pages: dict[int, AddressRanges] = {}  # by reservation

    def follow(self, event: Event):
        begin, end = event.address, event.address + event.size
        self.reserved += event.size if event.kind in ("segment_alloc", "segment_map") else -event.size
        if event.kind == "segment_alloc":
            self._plain[begin] = event.size
        elif event.kind == "segment_free":
            self._plain.pop(begin, None)
        elif event.kind == "segment_map":
            self._pages.setdefault(event.id, AddressRanges()).add(begin, end)
        elif event.id in self._pages:
            self._pages[event.id].remove(begin, end)

    def ranges(self) -> list[tuple[int, int, bool]]:
        """Yields address, bytes and whether the segment is expandable."""
        plain = [(address, size, False) for address, size in self._plain.items()]
        return sorted(plain + [(a, b - a, True) for pages in self._pages.values() for a, b in pages])


class _OneSegment:
    """One segment of all addresses in use, for a trace without segments."""

    reserved = 0

    def __init__(self, address: int, size: int):
        self._range = (address, size, False)

    def ranges(self) -> list[tuple[int, int, bool]]:
        return [self._range] if self._range[1] else []


class _Frames:
    """Returns a stack as the viewer shows it, innermost frame first. Events share the lists, also in the
    pickle."""

    def __init__(self):
        self._stacks: dict[tuple, list[dict[str, Any]]] = {}

    def of(self, event: Event) -> list[dict[str, Any]]:
        key = (event.op_index, event.role, event.phase, event.step)
        if key not in self._stacks:
            stack = [_frame("op", max(0, event.op_index), event.op)] if event.op else []
            stack += [
                _frame("role", 0, event.role),
                _frame("phase", 0, event.phase),
                _frame("step", event.step, f"step {event.step}"),
                _frame("headroom", 0, "trace"),
            ]
            self._stacks[key] = stack
        return self._stacks[key]


def _frame(filename: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


def _entries(event: Event, frames: list, device_free: int) -> Iterable[dict[str, Any]]:
    common = {"stream": event.stream, "time_us": event.time_ns // 1000, "frames": frames}
    if event.kind == "oom":
        return [{"action": "oom", "device_free": device_free, "size": event.requested, **common}]
    if event.kind == "free":
        actions = ("free_requested", "free_completed")
    else:
        actions = (event.kind,)
    size = event.requested if event.kind in BLOCK_KINDS else event.size
    return [{"action": action, "addr": event.address, "size": size, **common} for action in actions]


class _Blocks:
    """Returns the live blocks with their frames, in order of address."""

    def __init__(self, live: Iterable[tuple[Event, list]]):
        self._entries = sorted(live, key=lambda entry: entry[0].address)
        self._addresses = [event.address for event, _ in self._entries]

    def within(self, begin: int, end: int) -> list[tuple[Event, list]]:
        return self._entries[bisect_left(self._addresses, begin) : bisect_left(self._addresses, end)]


def _segment(address: int, size: int, expandable: bool, live: _Blocks) -> dict[str, Any]:
    """Returns the segment with its blocks, and inactive blocks between them."""
    blocks = []
    at = address
    inside = live.within(address, address + size)
    for event, frames in inside:
        if event.address > at:
            blocks.append(_block(at, event.address - at, 0, "inactive", []))
        blocks.append(_block(event.address, event.size, event.requested, "active_allocated", frames))
        at = event.address + event.size
    if at < address + size:
        blocks.append(_block(at, address + size - at, 0, "inactive", []))
    active = sum(event.size for event, _ in inside)
    return {
        "device": DEVICE,
        "address": address,
        "total_size": size,
        "allocated_size": active,
        "active_size": active,
        "requested_size": sum(event.requested for event, _ in inside),
        "stream": inside[0][0].stream if inside else 0,
        "segment_type": "small" if size <= SMALL_SEGMENT else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": expandable,
        "frames": [],
        "blocks": blocks,
    }


def _block(address: int, size: int, requested: int, state: str, frames: list) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


def _settings(header: dict[str, Any]) -> dict[str, Any]:
    keys = ("device", "rules", "allocator", "workload", "capacity_bytes", "granule_bytes")
    return {key: header[key] for key in keys}
