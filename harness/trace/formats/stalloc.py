"""STAlloc's text format: the line `1 pointer size stream` allocates, `0 pointer size stream` frees."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from .builder import FormatError, TraceBuilder, pointer
from .history import History

LONGEST_NUMBER = 20


def matches(head: bytes) -> bool:
    fields = head.split(b"\n", 1)[0].split()
    return len(fields) == 4 and fields[0] in (b"0", b"1")


def read(path: Path, builder: TraceBuilder):
    """Raises FormatError with the line for a malformed file."""
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, start=1):
            where = f"line {number}"
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 4 or fields[0] not in ("0", "1") or not _is_number(fields[2]):
                raise FormatError(f"{where}: is not '1|0 pointer size stream'")
            if fields[0] == "1":
                builder.alloc(fields[1], int(fields[2]), where, address=pointer(fields[1]), stream=fields[3])
            else:
                builder.free(fields[1], where, stream=fields[3])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def write(history: History, stream: BinaryIO):
    for event in history.blocks():
        if event.kind != "oom":
            stream.write(b"%d %d %d %d\n" % (event.kind == "alloc", event.address, event.requested, event.stream))
