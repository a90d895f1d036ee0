"""PyTorch's memory snapshot, a pickle as torch.cuda.memory._dump_snapshot writes it.

Reading an untrusted pickle can run code. This reader admits only containers, strings and numbers: it refuses
every class and function before looking it up."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

from .builder import MAXIMUM_BYTES, PHASES, ROLES, FormatError, TraceBuilder
from .pytorch_export import write

__all__ = ["matches", "read", "write"]

LIVE_STATES = ("active_allocated", "active_pending_free", "active_awaiting_free")
SEGMENT_ACTIONS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
ACTIONS = ("alloc", "free_completed", "oom", *SEGMENT_ACTIONS)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise FormatError(f"asks for {module}.{name}: a memory snapshot contains no code, so this is not one")

    def persistent_load(self, pid):
        raise FormatError("refers to objects outside itself: this is not a memory snapshot")


class _Event(NamedTuple):
    action: str
    address: int
    size: int
    stream: int
    time_ns: int
    frames: list
    where: str


def matches(head: bytes) -> bool:
    return head[:1] == b"\x80"


def read(path: Path, builder: TraceBuilder):
    """Reads the device with the longest history. Blocks that were live before the history's first event are
    allocated first. Raises FormatError for anything that is not a snapshot."""
    snapshot = _load(path)
    limit = _RecordLimit(path.stat().st_size)
    traces = snapshot.get("device_traces") or []
    _expect(isinstance(traces, list) and all(isinstance(t, list) for t in traces), "device_traces is not a list of lists")
    device = max(range(len(traces)), key=lambda i: len(traces[i]), default=0)
    limit.take(len(traces[device]) if traces else 0)
    history = [
        event
        for number, record in enumerate(traces[device] if traces else [])
        if (event := _event(record, f"device_traces[{device}][{number}]")) is not None
    ]
    builder.header["workload"] = f"device {device} of a PyTorch memory snapshot"
    for address, (size, stream) in _alive_before(history, _live_blocks(snapshot, device, limit)):
        builder.alloc(address, size, "segments", address=address, stream=stream)
    places = _Places()
    segments = _SegmentNumbers()
    for event in history:
        _add(builder, event, places, segments)


def _load(path: Path) -> dict:
    try:
        with path.open("rb") as stream:
            snapshot = _PlainUnpickler(stream).load()
    except FormatError:
        raise
    except MemoryError:
        raise FormatError("asks for more memory than a snapshot of its length can need") from None
    except Exception as error:  # a damaged pickle can raise almost any exception
        raise FormatError(f"is not a pickle, or is damaged: {error}") from None
    _expect(isinstance(snapshot, dict), "is not a dictionary")
    _expect("segments" in snapshot or "device_traces" in snapshot, "has neither segments nor device_traces")
    return snapshot


def _event(record: Any, where: str) -> _Event | None:
    _expect(isinstance(record, dict), f"{where} is not a dictionary")
    action = record.get("action")
    if not isinstance(action, str) or action not in ACTIONS:
        return None
    frames = record.get("frames") or []
    _expect(isinstance(frames, list), f"{where}: frames is not a list")
    return _Event(
        action,
        0 if action == "oom" else _whole(record, "addr", where),
        _whole(record, "size", where),
        _whole(record, "stream", where, default=0),
        _whole(record, "time_us", where, default=0) * 1000 % MAXIMUM_BYTES,
        frames,
        where,
    )


class _RecordLimit:
    """Limits the number of records. A reference takes few bytes, but a file can repeat references to a long
    list; a record that is written out takes more than one byte."""

    def __init__(self, file_bytes: int):
        self._left = file_bytes

    def take(self, records: int):
        self._left -= records
        _expect(self._left >= 0, "repeats the same records more often than a snapshot of its length can")


def _live_blocks(snapshot: dict, device: int, limit: _RecordLimit) -> dict[int, tuple[int, int]]:
    """Returns {address: (requested bytes, stream)} of the blocks in use when the snapshot was taken."""
    blocks = {}
    segments = snapshot.get("segments") or []
    _expect(isinstance(segments, list), "segments is not a list")
    for index, segment in enumerate(segments):
        where = f"segments[{index}]"
        _expect(isinstance(segment, dict), f"{where} is not a dictionary")
        if _whole(segment, "device", where, default=0) != device:
            continue
        address = _whole(segment, "address", where)
        stream = _whole(segment, "stream", where, default=0)
        records = segment.get("blocks") or []
        _expect(isinstance(records, list), f"{where}: blocks is not a list")
        limit.take(len(records))
        for block in records:
            _expect(isinstance(block, dict), f"{where}: a block is not a dictionary")
            size = _whole(block, "size", where)
            # In older files, a block begins where the previous one ends.
            at = _whole(block, "address", where, default=address)
            address = at + size
            if block.get("state") in LIVE_STATES:
                blocks[at] = (_whole(block, "requested_size", where, default=0) or size, stream)
    return blocks


def _alive_before(
    history: list[_Event], alive_at_end: dict[int, tuple[int, int]]
) -> list[tuple[int, tuple[int, int]]]:
    """Returns the blocks that the history did not allocate: it frees them, or they are live at its end."""
    allocated: set[int] = set()
    before = {}
    for event in history:
        if event.action == "alloc":
            allocated.add(event.address)
        elif event.action == "free_completed":
            if event.address not in allocated:
                before[event.address] = (event.size, event.stream)
            allocated.discard(event.address)
    for address, block in alive_at_end.items():
        if address not in allocated:
            before.setdefault(address, block)
    return sorted(before.items())


def _add(builder: TraceBuilder, event: _Event, places: _Places, segments: _SegmentNumbers):
    context = {**places.of(event.frames), "stream": event.stream, "time_ns": event.time_ns}
    if event.action == "alloc":
        builder.alloc(event.address, event.size, event.where, address=event.address, **context)
    elif event.action == "free_completed":
        if builder.is_live(event.address):
            builder.free(event.address, event.where, **context)
    elif event.action == "oom":
        builder.oom(event.size, event.where, **context)
    else:
        number = segments.of(event)
        builder.segment(event.action, number, event.address, event.size, event.where, **context)


class _SegmentNumbers:
    """Returns an id that no other segment has, not even a freed one."""

    def __init__(self):
        self._live: dict[int, int] = {}
        self._last = 0

    def of(self, event: _Event) -> int:
        # Pages are mapped into reservations; a snapshot names one reservation per stream.
        key = event.address if event.action in ("segment_alloc", "segment_free") else -1 - event.stream
        if key not in self._live:
            self._last += 1
            self._live[key] = self._last
        return self._live.pop(key) if event.action == "segment_free" else self._live[key]


_NO_PLACES = ("/torch/", "/virtual_gpu/hook/")  # frames that every allocation has
_LIBRARIES = ("/site-packages/", "/dist-packages/")  # shown when no frame belongs to the user's program


class _Places:
    """Finds the op of an event: the innermost frame of the user's own Python, as "model.py:42 forward", or
    the name that Headroom's own export wrote."""

    def __init__(self):
        self._known: dict[int, dict] = {}  # by identity, because events of a snapshot share their frames

    def of(self, frames: list) -> dict:
        if id(frames) not in self._known:
            self._known[id(frames)] = self._read(frames)
        return dict(self._known[id(frames)])

    def _read(self, frames: list) -> dict:
        texts = [(_text(f, "filename"), _line(f), _text(f, "name")) for f in frames if isinstance(f, dict)]
        if texts and texts[-1][0] == "headroom":
            return _own_context(texts)
        python = [text for text in texts if text[0].endswith(".py") and not any(part in text[0] for part in _NO_PLACES)]
        users = [text for text in python if not any(part in text[0] for part in _LIBRARIES)]
        for filename, line, name in [*users, *python][:1]:
            return {"op": f"{filename.rsplit('/', 1)[-1]}:{line} {name}"}
        return {}


def _own_context(frames: list[tuple[str, int, str]]) -> dict:
    context = {}
    for filename, line, name in frames:
        if filename == "op":
            context["op"] = name
        elif filename == "step" and abs(line) < 1 << 31:
            context["step"] = line
        elif filename == "phase" and name in PHASES:
            context["phase"] = name
        elif filename == "role" and name in ROLES:
            context["role"] = name
    return context


def _text(frame: dict, key: str) -> str:
    value = frame.get(key)
    return value if isinstance(value, str) else ""


def _line(frame: dict) -> int:
    value = frame.get("line")
    return value if isinstance(value, int) and abs(value) <= MAXIMUM_BYTES else 0


def _whole(record: dict, key: str, where: str, default: int | None = None) -> int:
    value = record.get(key, default)
    sound = isinstance(value, int) and 0 <= value <= MAXIMUM_BYTES
    _expect(sound, f"{where}: {key} is missing, or is not a whole number of a plausible size")
    return value


def _expect(holds: bool, complaint: str):
    if not holds:
        raise FormatError(complaint)
