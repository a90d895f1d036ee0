"""The moment at which a trace ran out of memory: the request, the live blocks, and those that prevented it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.data.layout import Block, Layout, layout_at


@dataclass(frozen=True)
class Obstacle:
    """A live block."""

    op: str  # the op that requested it; empty outside ops
    role: str
    step: int
    size: int


@dataclass(frozen=True)
class Failure:
    event: int
    requested: int
    op: str  # empty outside ops
    role: str
    phase: str
    step: int
    live: int  # requested bytes of everything live
    layout: Layout | None  # None where addresses mean nothing
    in_the_way: Sequence[Obstacle]  # as from least_in_the_way()


def failure_at(
    header: dict[str, Any],
    op_names: Sequence[str],
    kinds: Sequence[str],
    roles: Sequence[str],
    columns: dict[str, Any],
    event: int,
) -> Failure:
    def op_of(place: int) -> str:
        op = columns["op"][place]
        return op_names[op] if columns["step"][place] > 0 and 0 <= op < len(op_names) else ""

    layout = layout_at(kinds, roles, columns, event)
    live: dict[int, int] = {}
    for place in range(event):
        if kinds[place] == "alloc":
            live[columns["id"][place]] = columns["requested_bytes"][place]
        elif kinds[place] == "free":
            live.pop(columns["id"][place], None)
    requested = columns["requested_bytes"][event]
    blocks = least_in_the_way(layout, requested) if layout else ()
    return Failure(
        event=event,
        requested=requested,
        op=op_of(event),
        role=roles[event],
        phase=header["phases"][columns["phase"][event]],
        step=columns["step"][event],
        live=sum(live.values()),
        layout=layout,
        in_the_way=[
            Obstacle(op_of(block.event), block.role, columns["step"][block.event], block.size) for block in blocks
        ],
    )


def least_in_the_way(layout: Layout, requested: int) -> Sequence[Block]:
    """Finds the part of a segment that is large enough for `requested` bytes and has the fewest bytes in use, and
    returns the blocks in it. Empty if every segment is smaller."""
    best: Sequence[Block] = ()
    least = None
    for segment in layout.segments:
        first, length, used = 0, 0, 0
        for last, part in enumerate(segment.parts):
            length += part.size
            used += part.size if part.role else 0
            while length - segment.parts[first].size >= requested:
                length -= segment.parts[first].size
                used -= segment.parts[first].size if segment.parts[first].role else 0
                first += 1
            if length >= requested and (least is None or used < least):
                least = used
                best = [block for block in segment.parts[first : last + 1] if block.role]
    return best
