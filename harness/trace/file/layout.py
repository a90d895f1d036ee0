"""The file format, shared by reader and writer. README.md describes it."""

from __future__ import annotations

import struct

EXTENSION = ".hrtrace"
MAGIC = b"\x89HRTRACE"
VERSION = "1.0"

PREFIX = struct.Struct("<cI")  # prefix of a block: its kind, and the bytes of its frame
EVENT_COUNT = struct.Struct("<I")
COLUMN_HEAD = struct.Struct("<BBQQ")  # coding, width, start, base
AS_IS, DIFFERENCES = 0, 1

MAXIMUM_CONTENT = 16 * 2**20
MAXIMUM_NAME_BYTES = 16 * 2**20
MAXIMUM_CHUNK_EVENTS = 1 << 16

COLUMNS = (
    "kind",
    "role",
    "phase",
    "stream",
    "id",
    "op",
    "step",
    "requested_bytes",
    "slack_bytes",
    "address",
    "time_ns",
)


class TraceFileError(Exception):
    """Says why a file is not a valid trace, and at which place."""
