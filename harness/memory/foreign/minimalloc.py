"""MiniMalloc's CSV of buffers with lifetimes: id, lower, upper (exclusive) or end (inclusive), size."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import BinaryIO

from .builder import FormatError, TraceBuilder, check_number
from .history import History

IDS = ("id", "buffer", "buffer_id")
LOWERS = ("lower", "start", "begin")


def matches(head: bytes) -> bool:
    names = {name.strip() for name in head.split(b"\n", 1)[0].decode("utf-8", "replace").split(",")}
    return "size" in names and bool(names & set(LOWERS)) and bool(names & {"upper", "end"})


def read(path: Path, builder: TraceBuilder):
    """Time becomes order: at one time buffers end before others begin. Raises FormatError with the
    line for a malformed file."""
    events = []  # time, 0 = end or 1 = begin, key, size, where
    with path.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream, skipinitialspace=True)
        for row in rows:
            where = f"line {rows.line_num}"
            key = next((row[name] for name in IDS if row.get(name)), where)
            lower = _number(row, LOWERS, where)
            inclusive = "upper" not in row
            upper = _number(row, ("upper", "end"), where) + (1 if inclusive else 0)
            if upper <= lower:
                raise FormatError(f"{where}: buffer {key} ends at {upper}, not after it begins at {lower}")
            size = _number(row, ("size",), where)
            events += [(lower, 1, key, size, where), (upper, 0, key, size, where)]
    events.sort(key=lambda event: event[:2])
    for time, begins, key, size, where in events:
        if begins:
            builder.alloc(key, size, where, time_ns=time)
        else:
            builder.free(key, where, time_ns=time)


def _number(row: dict, names: tuple[str, ...], where: str) -> int:
    text = next((row[name] for name in names if row.get(name) is not None), None)
    if text is None:
        raise FormatError(f"{where}: has no {names[0]}")
    try:
        number = int(text)
    except ValueError:
        raise FormatError(f"{where}: {names[0]} '{text[:40]}' is no whole number") from None
    if number < 0:
        raise FormatError(f"{where}: {names[0]} {number} is negative")
    return check_number(number, where)


def write(history: History, stream: BinaryIO):
    """Time is the number of the allocation or free, so that order comes back as it was. What is
    never freed ends after the last."""
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
