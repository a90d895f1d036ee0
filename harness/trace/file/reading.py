"""Reads trace files as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy
import zstandard

from . import layout
from .layout import TraceFileError

_TABLES = {"kind": "kinds", "role": "roles", "phase": "phases"}
# The largest and smallest numbers of each column. The default is a signed 64-bit integer.
_RANGES = {"stream": (0, 2**8 - 1), "id": (0, 2**32 - 1), "op": (-1, 2**32 - 2), "step": (-(2**31), 2**31 - 1)}

Chunk = dict[str, numpy.ndarray]  # int64 arrays by column, including size_bytes


class TraceReader:
    """Iterates over chunks. `header` is known from the beginning; `op_names` are those that the chunks read
    so far can refer to. All methods raise TraceFileError for a damaged file."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._block = 0
        self._events = 0
        self._name_bytes = 0
        self.op_names: list[str] = []
        if stream.read(len(layout.MAGIC)) != layout.MAGIC:
            raise TraceFileError("is not a Headroom trace")
        kind, content = self._next_block()
        if kind != b"H":
            self._fail("does not begin with a header")
        self.header = self._checked_header(self._json(content))

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            kind, content = self._next_block()
            if kind == b"C":
                chunk = self._decode(content)
                self._events += len(chunk["kind"])
                yield chunk
            elif kind == b"N":
                self._add_names(content)
            elif kind == b"E":
                self._check_end(content)
                return
            else:
                self._fail("is damaged: a second header")

    def _fail(self, what: str) -> None:
        raise TraceFileError(f"{what} (block {self._block}, after {self._events} events)")

    def _next_block(self) -> tuple[bytes, bytes]:
        self._block += 1
        prefix = self._stream.read(layout.PREFIX.size)
        if len(prefix) < layout.PREFIX.size:
            self._fail("is cut off")
        kind, size = layout.PREFIX.unpack(prefix)
        if kind not in (b"H", b"N", b"C", b"E"):
            self._fail(f"is damaged: {kind!r} is not a kind of block")
        if size > 2 * layout.MAXIMUM_CONTENT:
            self._fail(f"is damaged: a block of {size} bytes")
        frame = self._stream.read(size)
        if len(frame) < size:
            self._fail("is cut off")
        try:
            # Both of zstd's special values, unknown and error, exceed any valid content size.
            if zstandard.frame_content_size(frame) > layout.MAXIMUM_CONTENT:
                self._fail("is damaged: a frame has no known or plausible size")
            return kind, zstandard.ZstdDecompressor().decompress(frame, max_output_size=layout.MAXIMUM_CONTENT)
        except zstandard.ZstdError as error:
            self._fail(f"is damaged: {error}")
            raise

    def _json(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            self._fail(f"is damaged: {error}")

    def _checked_header(self, header: Any) -> dict[str, Any]:
        texts = ("version", "device", "rules", "allocator", "workload")
        lists = ("kinds", "roles", "phases", "columns")
        if not isinstance(header, dict) or not all(isinstance(header.get(key), str) for key in texts):
            self._fail("is damaged: its header lacks a text")
        if not all(_is_list_of_texts(header.get(key)) for key in lists):
            self._fail("is damaged: its header lacks a list of names")
        if not all(isinstance(header.get(key), int) for key in ("capacity_bytes", "granule_bytes")):
            self._fail("is damaged: its header lacks a number")
        if header["version"].split(".")[0] != layout.VERSION.split(".")[0]:
            self._fail(f"is of version {header['version']}; this program reads {layout.VERSION.split('.')[0]}.x")
        return header

    def _add_names(self, content: bytes) -> None:
        self._name_bytes += len(content)
        if self._name_bytes > layout.MAXIMUM_NAME_BYTES:
            self._fail("has more names of ops than a trace may hold")
        names = self._json(content)
        if not _is_list_of_texts(names):
            self._fail("is damaged: its names of ops are not a list of texts")
        self.op_names += names

    def _check_end(self, content: bytes) -> None:
        if self._json(content) != {"events": self._events, "op_names": len(self.op_names)}:
            self._fail("is damaged: other numbers of events and names of ops were written")
        if self._stream.read(1):
            self._fail("goes on after its end")

    def _decode(self, content: bytes) -> Chunk:
        try:
            chunk = _decode_columns(content, self.header["columns"])
        except (ValueError, TraceFileError) as error:
            self._fail(f"is damaged: {error}")
        for name, table in _TABLES.items():
            self._check_range(chunk, name, 0, len(self.header[table]) - 1)
        for name, (low, high) in _RANGES.items():
            self._check_range(chunk, name, low, high)
        chunk["size_bytes"] = chunk["requested_bytes"] + chunk.pop("slack_bytes")
        return chunk

    def _check_range(self, chunk: Chunk, name: str, low: int, high: int) -> None:
        if chunk[name].min() < low or chunk[name].max() > high:
            self._fail(f"is damaged: column '{name}' holds a value that does not fit")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _decode_columns(content: bytes, names: list[str]) -> Chunk:
    (count,) = layout.EVENT_COUNT.unpack(content[: layout.EVENT_COUNT.size].ljust(layout.EVENT_COUNT.size, b"\0"))
    if not 0 < count <= layout.MAXIMUM_CHUNK_EVENTS:
        raise TraceFileError(f"a chunk says that it holds {count} events")
    at = layout.EVENT_COUNT.size
    columns = {}
    for name in names:
        if len(content) < at + layout.COLUMN_HEAD.size:
            raise TraceFileError(f"column '{name}' ends early")
        coding, width, start, base = layout.COLUMN_HEAD.unpack_from(content, at)
        at += layout.COLUMN_HEAD.size
        if coding not in (layout.AS_IS, layout.DIFFERENCES) or width not in (0, 1, 2, 4, 8):
            raise TraceFileError(f"column '{name}' has no known coding")
        values = numpy.full(count, base, dtype=numpy.uint64)
        if width:
            values += numpy.frombuffer(content, dtype=f"<u{width}", count=count, offset=at)
        if coding == layout.DIFFERENCES:
            values = numpy.cumsum(values, dtype=numpy.uint64) + numpy.uint64(start)
        at += count * width
        columns[name] = values.view(numpy.int64)
    if at != len(content):
        raise TraceFileError("bytes are left after the last column")
    missing = [name for name in layout.COLUMNS if name not in columns]
    if missing:
        raise TraceFileError(f"column '{missing[0]}' is missing")
    return {name: columns[name] for name in layout.COLUMNS}


@dataclass(frozen=True)
class Trace:
    """A whole trace. Columns are int64 arrays of equal length, by name."""

    header: dict[str, Any]
    op_names: list[str]
    columns: Chunk


def read_trace(path: Path, maximum_events: int) -> Trace:
    """Reads a whole trace. Raises TraceFileError for a damaged file or more than `maximum_events`, OSError
    when the file cannot be read."""
    with path.open("rb") as stream:
        reader = TraceReader(stream)
        chunks = []
        events = 0
        for chunk in reader:
            events += len(chunk["kind"])
            if events > maximum_events:
                raise TraceFileError(f"has more than {maximum_events:,} events")
            chunks.append(chunk)
    names = chunks[0] if chunks else (*layout.COLUMNS, "size_bytes")
    empty = [numpy.empty(0, dtype=numpy.int64)]
    columns = {name: numpy.concatenate([chunk[name] for chunk in chunks] or empty) for name in names}
    return Trace(reader.header, reader.op_names, columns)
