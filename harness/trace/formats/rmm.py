"""The CSV log of RAPIDS Memory Manager's logging adaptor: Thread,Time,Action,Pointer,Size,Stream."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import BinaryIO

from .builder import FormatError, TraceBuilder, check_number, pointer
from .history import History

COLUMNS = ("Action", "Pointer", "Size", "Stream")
FREES = ("free", "deallocate")
DAY_US = 24 * 3600 * 10**6
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})[.:](\d{6})", re.ASCII)  # older releases use a colon


def matches(head: bytes) -> bool:
    return head.lstrip().startswith(b"Thread,Time,Action")


def read(path: Path, builder: TraceBuilder):
    """Reads the log. Frees of blocks that were allocated before the log began are skipped. Raises FormatError
    with the line of a malformed file."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = csv.DictReader(stream)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"line 1: column {missing[0]} is missing")
        for row in rows:
            _add(builder, row, f"line {rows.line_num}")


def _add(builder: TraceBuilder, row: dict, where: str):
    if any(row[name] is None for name in COLUMNS):
        raise FormatError(f"{where}: has too few fields")
    try:
        size = int(row["Size"])
    except ValueError:
        raise FormatError(f"{where}: Size '{row['Size'][:40]}' is not a whole number") from None
    key, action = row["Pointer"].strip(), row["Action"].strip()
    context = {"stream": row["Stream"].strip(), "time_ns": _nanoseconds(row.get("Time") or "")}
    if action == "allocate":
        if check_number(size, where) > 0:
            builder.alloc(key, size, where, address=pointer(key), **context)
    elif action in FREES:
        if builder.is_live(key):
            builder.free(key, where, **context)
    elif action == "allocate failure":
        builder.oom(size, where, **context)
    else:
        raise FormatError(f"{where}: Action '{action[:40]}' is not allocate, free or allocate failure")


def _nanoseconds(time: str) -> int:
    """Returns nanoseconds since midnight, or 0 if the text is not a time of day."""
    match = _TIME.fullmatch(time.strip())
    if match is None:
        return 0
    hours, minutes, seconds, micros = (int(part) for part in match.groups())
    return (((hours * 60 + minutes) * 60 + seconds) * 10**6 + micros) * 1000


def write(history: History, stream: BinaryIO):
    stream.write(b"Thread,Time,Action,Pointer,Size,Stream\n")
    actions = {"alloc": "allocate", "free": "free", "oom": "allocate failure"}
    for event in history.blocks():
        seconds, micros = divmod(event.time_ns // 1000 % DAY_US, 10**6)
        time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
        address = f"{event.address:#x}" if event.kind != "oom" else "(nil)"
        line = f"1,{time},{actions[event.kind]},{address},{event.requested},{event.stream:x}\n"
        stream.write(line.encode())
