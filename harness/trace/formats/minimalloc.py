"""MiniMalloc's CSV of buffers with lifetimes (src/converter.cc of google/minimalloc). The columns are id,
lower, upper (exclusive) or end (inclusive), and size; optional ones are alignment, gaps, offset and hint.
Their order does not matter."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.trace.file import TraceFileError

from .builder import FormatError, TraceBuilder, check_number
from .history import History

# The names of each column. Only alignment, gaps, offset, hint and id are optional.
NAMES = {
    "id": ("id", "buffer", "buffer_id"),
    "lower": ("lower", "start", "begin"),
    "upper": ("upper", "end"),
    "size": ("size",),
    "alignment": ("alignment",),
    "gaps": ("gaps",),
    "offset": ("offset",),
    "hint": ("hint",),
}
NEEDED = ("lower", "upper", "size")
MEANS = {name: meaning for meaning, names in NAMES.items() for name in names}
NO_HINT = "-1"
LONGEST_NUMBER = 20
MOST_NAME_BYTES = 8 << 20
MOST_PLACEMENT_BYTES = 8 << 20

# A period in which only the bytes [begin, end) of a buffer are in use: lower, upper, begin, end.
Gap = tuple[int, int, int, int]
# Constraints on a block's place: id in the trace, alignment, offset, hint, gaps.
Placement = tuple[int, int, "int | None", "int | None", list[Gap]]


def matches(head: bytes) -> bool:
    line = head.decode("utf-8-sig", "replace").lstrip("\r\n").split("\n", 1)[0]
    meanings = [MEANS.get(name.strip()) for name in line.split(",")]
    return sum(name in meanings for name in NEEDED) >= 2


def read(path: Path, builder: TraceBuilder):
    """Turns times into an order of events: at equal times, buffers end before others begin. The constraints
    on places are stored in the trace's header. Raises FormatError with the line of a malformed file."""
    buffers = []
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream, skipinitialspace=True, strict=True)
        header = next((row for row in rows if row), [])
        columns = _columns(header)
        inclusive = "end" in (name.strip() for name in header)
        for fields in rows:
            if fields:
                row = dict(zip(columns, _checked(fields, header, rows)))
                buffers.append(_Buffer(row, f"line {rows.line_num}", inclusive=inclusive))
    # Buffers with empty lifetimes take no memory, and a trace cannot hold them.
    buffers = [buffer for buffer in buffers if buffer.lower < buffer.upper]
    events = [(buffer.lower, 1, buffer) for buffer in buffers] + [(buffer.upper, 0, buffer) for buffer in buffers]
    events.sort(key=lambda event: event[:2])
    begun = [buffer for _, begins, buffer in events if begins]
    placements = [(number, *buffer.placement()) for number, buffer in enumerate(begun, start=1) if buffer.is_placed()]
    if placements and len(json.dumps(placements)) > MOST_PLACEMENT_BYTES:
        raise FormatError("has more constraints on places than a trace can hold")
    builder.header["placement"] = placements
    named = sum(len(buffer.key.encode()) + 8 for buffer in buffers) <= MOST_NAME_BYTES
    for time, begins, buffer in events:
        if begins:
            op = buffer.key if named else ""
            builder.alloc(buffer.key, buffer.size, buffer.where, op=op, time_ns=time)
        else:
            builder.free(buffer.key, buffer.where, time_ns=time)


def _columns(header: list[str]) -> list[str]:
    columns: list[str] = []
    for name in (name.strip() for name in header):
        if name not in MEANS:
            raise FormatError(f"line 1: column '{name[:40]}' is unknown; there are {', '.join(MEANS)}")
        if MEANS[name] in columns:
            raise FormatError(f"line 1: column '{name}' occurs twice, or under two names")
        columns.append(MEANS[name])
    for name in NEEDED:
        if name not in columns:
            raise FormatError(f"line 1: has no column '{name}'")
    return columns


def _checked(fields: list[str], header: list[str], rows) -> list[str]:
    if len(fields) != len(header):
        raise FormatError(f"line {rows.line_num}: has {len(fields)} fields, the header {len(header)}")
    return [field.strip() for field in fields]


class _Buffer:
    """One row of the file."""

    def __init__(self, row: dict[str, str], where: str, *, inclusive: bool):
        self.where = where
        self.key = row.get("id") or where
        self._later = 1 if inclusive else 0
        self.lower = self._number("lower", row["lower"])
        self.upper = self._number("upper", row["upper"]) + self._later
        if self.upper < self.lower:
            raise FormatError(f"{where}: buffer {self.key} ends at {self.upper}, before it begins at {self.lower}")
        self.size = self._number("size", row["size"])
        self.alignment = self._number("alignment", row.get("alignment") or "1")
        if self.alignment == 0:
            raise FormatError(f"{where}: alignment 0; use 1 to allow any place")
        self.offset = self._number("offset", row["offset"]) if row.get("offset") else None
        hint = row.get("hint") or NO_HINT
        self.hint = None if hint == NO_HINT else self._number("hint", hint)
        gaps = sorted(self._gap(text) for text in row.get("gaps", "").split())
        self.gaps = [gap for gap in gaps if gap[0] < gap[1]]
        for before, after in zip(self.gaps, self.gaps[1:]):
            if after[0] < before[1]:
                raise FormatError(f"{where}: gaps of buffer {self.key} overlap at {after[0]}")

    def is_placed(self) -> bool:
        return self.alignment > 1 or self.offset is not None or self.hint is not None or bool(self.gaps)

    def placement(self) -> tuple[int, int | None, int | None, list[Gap]]:
        return self.alignment, self.offset, self.hint, self.gaps

    def _number(self, name: str, text: str) -> int:
        if text.startswith("-") and text[1:].isdecimal():
            raise FormatError(f"{self.where}: {name} {text[:40]} is negative")
        if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
            raise FormatError(f"{self.where}: {name} '{text[:40]}' is not a whole number")
        return check_number(int(text), self.where)

    def _gap(self, text: str) -> Gap:
        """Reads lower-upper, or lower-upper@begin:end for a gap that keeps bytes. The gap is limited to the
        buffer's lifetime."""
        times, at, window = text.partition("@")
        lower, dash, upper = times.partition("-")
        begin, colon, end = window.partition(":") if at else ("0", ":", "0")
        if not dash or not colon:
            raise FormatError(f"{self.where}: gap '{text[:40]}' is not of the form 7-9 or 7-9@0:512")
        gap = (self._number("gap", lower), self._number("gap", upper) + self._later,
               self._number("gap", begin), self._number("gap", end))  # fmt: skip
        if gap[0] > gap[1]:
            raise FormatError(f"{self.where}: gap '{text[:40]}' ends before it begins")
        if not gap[2] <= gap[3] <= self.size:
            raise FormatError(f"{self.where}: gap '{text[:40]}' keeps bytes that buffer {self.key} does not have")
        inside = [min(max(time, self.lower), self.upper) for time in gap[:2]]
        return inside[0], inside[1], gap[2], gap[3]


def write(history: History, stream: BinaryIO):
    """Writes the buffers. If the history came from such a file, lifetimes, ids and constraints are written
    unchanged. Otherwise time is the number of the allocation or free, which keeps their order; blocks that
    are never freed end after the last event."""
    placement = history.header.get("placement")
    if placement is None:
        _write_order(history, stream)
        return
    places = _places(placement)
    shown = ["alignment"] if any(place[0] > 1 for place in places.values()) else []
    shown += ["hint"] if any(place[2] is not None for place in places.values()) else []
    shown += ["gaps"] if any(place[3] for place in places.values()) else []
    shown += ["offset"] if any(place[1] is not None for place in places.values()) else []
    rows = csv.writer(_Text(stream), lineterminator="\n")
    rows.writerow(["id", "lower", "upper", "size", *shown])
    for number, name, lower, upper, size in _lives(history):
        alignment, offset, hint, gaps = places.get(number, (1, None, None, []))
        cells = {
            "alignment": alignment,
            "hint": NO_HINT if hint is None else hint,
            "gaps": " ".join(map(_gap_text, gaps)),
            "offset": "" if offset is None else offset,
        }
        rows.writerow([name or number, lower, upper, size, *(cells[column] for column in shown)])


def _places(placement) -> dict[int, tuple]:
    try:
        return {number: (alignment, offset, hint, gaps) for number, alignment, offset, hint, gaps in placement}
    except (TypeError, ValueError):
        raise TraceFileError("is damaged: its header's placement is invalid") from None


def _gap_text(gap) -> str:
    try:
        lower, upper, begin, end = gap
    except (TypeError, ValueError):
        raise TraceFileError("is damaged: a gap of its header's placement is invalid") from None
    return f"{lower}-{upper}" + (f"@{begin}:{end}" if begin < end else "")


class _Text:
    """A file-like object for csv.writer."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream

    def write(self, text: str):
        self._stream.write(text.encode())


def _lives(history: History) -> Iterator[tuple[int, str, int, int, int]]:
    """Yields id, name, lower, upper and size of every block, in order of their ends."""
    live: dict[int, tuple[str, int, int]] = {}
    for event in history.blocks():
        if event.kind == "alloc":
            live[event.id] = (event.op, event.time_ns, event.requested)
        elif event.kind == "free":
            name, lower, size = live.pop(event.id)
            yield event.id, name, lower, event.time_ns, size


def _write_order(history: History, stream: BinaryIO):
    stream.write(b"id,lower,upper,size\n")
    live: dict[int, tuple[int, int]] = {}  # id → lower, size
    buffers = time = 0

    def end(lower: int, size: int):
        nonlocal buffers
        buffers += 1
        stream.write(b"%d,%d,%d,%d\n" % (buffers, lower, time, size))

    for event in history.blocks():
        if event.kind == "alloc":
            live[event.id] = (time, event.requested)
        elif event.kind == "free":
            end(*live.pop(event.id))
        else:
            continue
        time += 1
    for lower, size in live.values():
        end(lower, size)
