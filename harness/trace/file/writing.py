"""Writes trace files one chunk at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy
import zstandard

from . import layout


class TraceWriter:
    """Writes chunks as they come. Without `finish` at the end, readers treat the file as truncated."""

    def __init__(
        self,
        stream: BinaryIO,
        header: Mapping[str, Any],
        *,
        kinds: Sequence[str],
        roles: Sequence[str],
        phases: Sequence[str],
    ):
        """`header` may hold device, rules, allocator, workload, capacity_bytes and granule_bytes."""
        self._stream = stream
        self._compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=True)
        self._events = 0
        self._op_names = 0
        self._name_bytes = 0
        stream.write(layout.MAGIC)
        unknown = {"device": "", "rules": "", "allocator": "", "workload": "", "capacity_bytes": 0, "granule_bytes": 0}
        tables = {"kinds": list(kinds), "roles": list(roles), "phases": list(phases), "columns": layout.COLUMNS}
        self._write(b"H", _json({"version": layout.VERSION, **unknown, **header, **tables}))

    def add_op_names(self, names: Sequence[str]) -> None:
        """Appends op names, which must precede the events that refer to them. Raises ValueError when all
        names together are longer than a file may hold."""
        if not names:
            return
        content = _json(list(names))
        self._name_bytes += len(content)
        if self._name_bytes > layout.MAXIMUM_NAME_BYTES:
            raise ValueError(f"names of ops take more than {layout.MAXIMUM_NAME_BYTES >> 20} MiB")
        self._write(b"N", content)
        self._op_names += len(names)

    def add(self, columns: Mapping[str, Sequence[int]]) -> None:
        """Writes one chunk: whole numbers by column, of equal length, for the columns of layout.COLUMNS, with
        size_bytes in place of slack_bytes."""
        arrays = {name: numpy.asarray(values).astype(numpy.int64) for name, values in columns.items()}
        arrays["slack_bytes"] = arrays["size_bytes"] - arrays["requested_bytes"]
        count = len(arrays["kind"])
        for begin in range(0, count, layout.MAXIMUM_CHUNK_EVENTS):
            end = min(count, begin + layout.MAXIMUM_CHUNK_EVENTS)
            content = [layout.EVENT_COUNT.pack(end - begin)]
            content += [_encode(arrays[name][begin:end].view(numpy.uint64)) for name in layout.COLUMNS]
            self._write(b"C", b"".join(content))
        self._events += count

    def finish(self) -> None:
        self._write(b"E", _json({"events": self._events, "op_names": self._op_names}))

    def _write(self, kind: bytes, content: bytes) -> None:
        frame = self._compressor.compress(content)
        self._stream.write(layout.PREFIX.pack(kind, len(frame)))
        self._stream.write(frame)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encode(values: numpy.ndarray) -> bytes:
    width, plain = _narrow(layout.AS_IS, values, start=0)
    if width == 0:
        return plain
    differences = numpy.diff(values)
    lowest = _smallest(differences)
    first = values[:1] - lowest  # assumed before the first value, so that the first difference is the lowest
    narrower, coded = _narrow(layout.DIFFERENCES, numpy.concatenate([lowest, differences]), start=int(first[0]))
    return coded if narrower < width else plain


def _narrow(coding: int, numbers: numpy.ndarray, start: int) -> tuple[int, bytes]:
    """Returns the width of a number in bytes, and the encoded column."""
    base = _smallest(numbers)
    beyond = numbers - base
    span = int(beyond.max())
    width = next(width for width in (0, 1, 2, 4, 8) if span < 1 << 8 * width)
    head = layout.COLUMN_HEAD.pack(coding, width, start, int(base[0]))
    return width, head + (beyond.astype(f"<u{width}").tobytes() if width else b"")


def _smallest(numbers: numpy.ndarray) -> numpy.ndarray:
    """Returns the smallest value as a signed number, so that -1 does not widen a column. It is an array,
    because sums of arrays wrap without a warning."""
    return numbers.view(numpy.int64).min(keepdims=True).view(numpy.uint64)
