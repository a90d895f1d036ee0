"""The CSV log of RAPIDS Memory Manager's logging adaptor: Thread,Time,Action,Pointer,Size,Stream."""

from __future__ import annotations

import csv
from pathlib import Path

from .builder import FormatError, TraceBuilder

COLUMNS = ("Action", "Pointer", "Size", "Stream")


def matches(head: bytes) -> bool:
    return head.lstrip().startswith(b"Thread,Time,Action")


def read(path: Path, builder: TraceBuilder):
    """Raises FormatError with the line for a malformed file. Frees of what was allocated before
    the log began are left out."""
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
        raise FormatError(f"{where}: Size '{row['Size']}' is no whole number") from None
    pointer, stream = row["Pointer"].strip(), row["Stream"].strip()
    action = row["Action"].strip()
    if action == "allocate":
        if size > 0:
            builder.alloc(pointer, size, where, stream=stream)
    elif action == "free":
        if builder.is_live(pointer):
            builder.free(pointer, where, stream=stream)
    elif action == "allocate failure":
        builder.oom(size, where, stream=stream)
    else:
        raise FormatError(f"{where}: Action '{action}' is none of allocate, free, allocate failure")
