"""PyTorch's memory snapshot, as torch.cuda.memory._dump_snapshot writes it: a pickle.

A pickle from a stranger is a program. This reader admits containers, strings and numbers only:
whatever asks for a class or a function is refused before it is looked up.
"""

from __future__ import annotations

import pickle
from pathlib import Path

from .builder import FormatError, TraceBuilder

LIVE_STATES = ("active_allocated", "active_pending_free", "active_awaiting_free")


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise FormatError(f"asks for {module}.{name}: a memory snapshot holds no code, this is something else")

    def persistent_load(self, pid):
        raise FormatError("refers to objects outside itself: this is no memory snapshot")


def matches(head: bytes) -> bool:
    return head[:1] == b"\x80"


def read(path: Path, builder: TraceBuilder):
    """Takes the device with the longest history. What was live before the history's first event
    is allocated first. Raises FormatError for anything that is not a snapshot."""
    snapshot = _load(path)
    traces = snapshot.get("device_traces") or []
    _expect(isinstance(traces, list) and all(isinstance(t, list) for t in traces), "device_traces is no list of lists")
    device = max(range(len(traces)), key=lambda i: len(traces[i]), default=0)
    history = traces[device] if traces else []
    builder.workload = f"device {device} of a PyTorch memory snapshot"
    alive_at_end = _live_blocks(snapshot, device)

    for key, size in _alive_before(history, alive_at_end):
        builder.alloc(key, size, "segments")
    for number, event in enumerate(history):
        _add(builder, event, f"device_traces[{device}][{number}]")


def _load(path: Path) -> dict:
    try:
        with path.open("rb") as stream:
            snapshot = _PlainUnpickler(stream).load()
    except FormatError:
        raise
    except MemoryError:
        raise FormatError("asks for more memory than a snapshot of its length can need") from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise FormatError(f"is no pickle, or a damaged one: {error}") from None
    _expect(isinstance(snapshot, dict), "holds no dictionary")
    _expect("segments" in snapshot or "device_traces" in snapshot, "has neither segments nor device_traces")
    return snapshot


def _live_blocks(snapshot: dict, device: int) -> dict[int, int]:
    """{address: requested bytes} of the blocks in use when the snapshot was taken."""
    blocks = {}
    for index, segment in enumerate(snapshot.get("segments") or []):
        where = f"segments[{index}]"
        _expect(isinstance(segment, dict), f"{where} is no dictionary")
        if segment.get("device", 0) != device:
            continue
        address = _whole(segment, "address", where)
        for block in segment.get("blocks") or []:
            _expect(isinstance(block, dict), f"{where}: a block is no dictionary")
            size = _whole(block, "size", where)
            # Older files leave a block's address to be the end of the one before.
            at = block.get("address", address)
            address = at + size
            if block.get("state") in LIVE_STATES:
                blocks[at] = block.get("requested_size") or size
    return blocks


def _alive_before(history: list, alive_at_end: dict[int, int]):
    """Blocks the history did not allocate: freed in it, or still there at its end."""
    allocated: set[int] = set()
    before = {}
    for event in history:
        _expect(isinstance(event, dict), "device_traces holds something else than dictionaries")
        address, action = event.get("addr"), event.get("action")
        if action == "alloc":
            allocated.add(address)
        elif action == "free_completed":
            if address not in allocated:
                before[address] = event.get("size", 0)
            allocated.discard(address)
    for address, size in alive_at_end.items():
        if address not in allocated:
            before.setdefault(address, size)
    return sorted(before.items())


def _add(builder: TraceBuilder, event: dict, where: str):
    action = event.get("action")
    if action not in ("alloc", "free_completed", "oom"):
        return
    size = _whole(event, "size", where)
    context = {
        "op": _place(event.get("frames") or []),
        "stream": event.get("stream", 0),
        "time_ns": max(0, int(event.get("time_us", 0))) * 1000,
    }
    if action == "oom":
        builder.oom(size, where, **context)
        return
    address = _whole(event, "addr", where)
    if action == "alloc":
        builder.alloc(address, size, where, **context)
    elif builder.is_live(address):
        builder.free(address, where, **context)


def _place(frames: list) -> str:
    """The innermost frame of the user's own Python: "model.py:42 forward"; "" when there is none."""
    for frame in frames:
        if not isinstance(frame, dict):
            return ""
        name = str(frame.get("filename", ""))
        if name.endswith(".py") and "/torch/" not in name:
            return f"{name.rsplit('/', 1)[-1]}:{frame.get('line', 0)} {frame.get('name', '')}"
    return ""


def _whole(record: dict, key: str, where: str) -> int:
    value = record.get(key)
    _expect(isinstance(value, int) and value >= 0, f"{where}: {key} is {value!r}, not a whole number")
    return value


def _expect(holds: bool, complaint: str):
    if not holds:
        raise FormatError(complaint)
