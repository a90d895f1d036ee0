#!/usr/bin/env python3
"""Coverage-guided fuzzing (atheris, from PyPI) of the Python code that reads untrusted files.

usage: readers_fuzzer.py TARGET [options of libFuzzer] [corpus directory ...]

A TARGET is `history` (the bytes of any foreign format), `snapshot` (a PyTorch snapshot of odd values),
`trace` (a Headroom trace) or `xla` (the text in which XLA says where its buffers lie). A file must be read
or refused with a reason; what was read must be readable as a trace.
"""

import io
import os
import pickle
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "harness/virtual_gpu/hook")]
os.environ.setdefault("HEADROOM_GPU_RECORDS", tempfile.gettempdir())
with atheris.instrument_imports(include=["harness", "headroom_xla", "headroom_lines", "headroom_memory"]):
    import headroom_xla
    from harness.trace.file import MAGIC
    from harness.trace.formats.__main__ import (
        HEAD_BYTES, NOT_SOUND, WRITERS, History, import_history, most_for_reading,
    )  # fmt: skip
    from harness.trace.isolation import bound_memory

REFUSALS = (*NOT_SOUND, UnicodeDecodeError, MemoryError)
WORDS = ["device_traces", "segments", "action", "addr", "size", "stream", "time_us", "frames", "blocks", "state",
         "address", "total_size", "requested_size", "filename", "line", "name", "device", "segment_type"]  # fmt: skip
TEXTS = ["alloc", "free_completed", "oom", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
         "active_allocated", "inactive", "large", "a.py", "forward"]  # fmt: skip
DEEPEST = 6
PLACE = tempfile.TemporaryDirectory(prefix="headroom-fuzz-")


def written(content):
    path = Path(PLACE.name) / "file"
    path.write_bytes(content)
    bound_memory(most_for_reading(len(content)))
    return path


def read_history(content):
    trace = io.BytesIO()
    try:
        import_history(written(content), content[:HEAD_BYTES], trace)
    except REFUSALS:
        return
    write_all(trace.getvalue())


def write_all(trace):
    """Exports to every format, as `headroom export` does. Not every format can hold everything."""
    for write in WRITERS.values():
        try:
            write(History(io.BytesIO(trace)), io.BytesIO())
        except REFUSALS:
            pass


def read_trace(content):
    try:
        write_all(content if content.startswith(MAGIC) else MAGIC + content)
    except REFUSALS:
        pass


def odd_value(data, depth=0):
    kind = data.ConsumeIntInRange(0, 6 if depth < DEEPEST else 3)
    if kind == 0:
        return data.ConsumeInt(9)
    if kind == 1:
        return data.PickValueInList(TEXTS)
    if kind == 2:
        return data.PickValueInList([None, True, 1.5, float("inf"), b"", (), 0, 512, 4096])
    if kind == 3:
        return data.ConsumeIntInRange(0, 64) * 512
    if kind == 4:
        return [odd_value(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 8))]
    return {data.PickValueInList(WORDS): odd_value(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 8))}


def read_snapshot(content):
    data = atheris.FuzzedDataProvider(content)
    event = {key: odd_value(data, 3) for key in WORDS[2:8]}
    snapshot = {"device_traces": [[event | {"action": "alloc", "size": 512, "addr": 512}, event, odd_value(data, 2)]],
                "segments": odd_value(data)}  # fmt: skip
    while data.remaining_bytes() and len(snapshot["device_traces"][0]) < 50:
        event = {"action": data.PickValueInList(TEXTS[:7]), "addr": 512 * data.ConsumeIntInRange(0, 16),
                 "size": 512 * data.ConsumeIntInRange(0, 8)}  # fmt: skip
        snapshot["device_traces"][0].append(event)
    read_history(pickle.dumps(snapshot, protocol=4))


def read_xla(content):
    path = Path(PLACE.name) / "module_0001.jit_step.gpu-buffer-assignment.txt"
    path.write_bytes(content)
    path.with_name(path.name.replace("-buffer-assignment", "")).write_bytes(content)
    try:
        program = headroom_xla.Program(path)
        program.read_instructions()
        found = [size for _, size in program.temporaries_at_peak()] + list(program.arguments().values())
    except Exception:  # headroom_notes.py reports that it could not be read
        return
    assert all(size >= 0 for size in found)


TARGETS = {"history": read_history, "snapshot": read_snapshot, "trace": read_trace, "xla": read_xla}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"{__doc__}\nname one of: {', '.join(TARGETS)}")
    read = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
