"""The layout of memory at one moment of a trace: segments, their blocks, and the holes between."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Sequence


Region = tuple[int, int | None]  # size and, for mapped pages, their reservation


@dataclass(frozen=True)
class Block:
    address: int
    size: int
    role: str  # empty: a hole
    event: int = -1  # the event that allocated it; −1: a hole


@dataclass(frozen=True)
class Segment:
    address: int
    size: int
    parts: Sequence[Block]  # blocks and holes in order of address; together they fill it


@dataclass(frozen=True)
class Layout:
    segments: Sequence[Segment]

    @property
    def holes(self) -> list[Block]:
        return [part for segment in self.segments for part in segment.parts if not part.role]

    @property
    def blocks(self) -> list[Block]:
        return [part for segment in self.segments for part in segment.parts if part.role]


def layout_at(kinds: Sequence[str], roles: Sequence[str], columns: dict[str, Any], moment: int) -> Layout | None:
    """The layout after event `moment`. None if a block lies outside the segments or two overlap: such addresses
    mean nothing."""
    mapped: dict[int, Region] = {}  # by address
    live: dict[int, int] = {}  # block id → its event
    for event in range(moment + 1):
        kind, address, size = kinds[event], columns["address"][event], columns["size_bytes"][event]
        if kind == "alloc":
            live[columns["id"][event]] = event
        elif kind == "free":
            live.pop(columns["id"][event], None)
        elif kind in ("segment_alloc", "segment_map"):
            mapped[address] = size, columns["id"][event] if kind == "segment_map" else None
        elif kind in ("segment_free", "segment_unmap") and not _unmap(mapped, address, size):
            return None
    regions = _merge(sorted(mapped.items()))
    if not regions:
        return None
    starts = [address for address, _ in regions]
    inside: list[list[Block]] = [[] for _ in regions]
    for event in sorted(live.values(), key=lambda event: columns["address"][event]):
        block = Block(columns["address"][event], columns["size_bytes"][event], roles[event], event)
        place = bisect_right(starts, block.address) - 1
        if place < 0 or block.address + block.size > sum(regions[place]):
            return None
        inside[place].append(block)
    segments = []
    for (address, size), blocks in zip(regions, inside):
        parts = _with_holes(address, size, blocks)
        if parts is None:
            return None
        segments.append(Segment(address, size, parts))
    return Layout(segments)


def _unmap(mapped: dict[int, Region], address: int, size: int) -> bool:
    """Removes [address, address + size), which may be a part of what was mapped at once."""
    if address in mapped and mapped[address][0] == size:
        del mapped[address]
        return True
    left = size
    for start, (length, reservation) in list(mapped.items()):
        low, high = max(start, address), min(start + length, address + size)
        if low >= high:
            continue
        del mapped[start]
        if start < low:
            mapped[start] = low - start, reservation
        if high < start + length:
            mapped[high] = start + length - high, reservation
        left -= high - low
    return left == 0


def _merge(regions: Sequence[tuple[int, Region]]) -> list[tuple[int, int]]:
    """Pages mapped next to each other in one reservation are one segment: blocks may lie across
    them. Segments that were allocated stay what they are, wherever they lie."""
    merged: list[tuple[int, int]] = []
    last: int | None = None
    for address, (size, reservation) in regions:
        if merged and sum(merged[-1]) == address and reservation is not None and reservation == last:
            merged[-1] = (merged[-1][0], merged[-1][1] + size)
        else:
            merged.append((address, size))
        last = reservation
    return merged


def _with_holes(address: int, size: int, blocks: Sequence[Block]) -> list[Block] | None:
    parts: list[Block] = []
    at = address
    for block in blocks:
        if block.address < at:
            return None
        if block.address > at:
            parts.append(Block(at, block.address - at, ""))
        parts.append(block)
        at = block.address + block.size
    if at < address + size:
        parts.append(Block(at, address + size - at, ""))
    return parts
