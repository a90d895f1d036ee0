"""Damaged and hostile files of every format: each is refused with a reason or read, never more."""

from __future__ import annotations

import io
import pickle
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from made_up import record, trace_bytes, write

from harness.trace.formats.__main__ import NOT_SOUND, convert
from harness.trace.file import MAGIC, TraceFileError, TraceReader
from harness.trace.file.layout import PREFIX

SEED = 20261121
REFUSALS = (*NOT_SOUND, UnicodeDecodeError, MemoryError)  # what the command ends with code 2 for


@pytest.fixture(autouse=True)
def own_memory_limit() -> Iterator[None]:
    """Reading sets a limit for the process, which outlives no test here."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Cuts out, inserts, overwrites or flips a part."""
    bytes_ = bytearray(content)
    at = chance.randrange(len(bytes_))
    length = chance.randrange(1, 33)
    source = chance.randrange(len(bytes_))
    part = bytes_[source : source + length]
    match chance.randrange(5):
        case 0:
            del bytes_[at : at + length]
        case 1:
            bytes_[at:at] = part
        case 2:
            bytes_[at : at + length] = part
        case 3:
            bytes_[at] = chance.choice([0, 0xFF, 0x80, chance.randrange(256)])
        case 4:
            bytes_[at] ^= 1 << chance.randrange(8)
    return bytes(bytes_)


def read_or_refuse(path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    out = path.with_suffix(".out")
    try:
        convert(path, out, "headroom")
    except REFUSALS as refusal:
        assert len(str(refusal)) < 500
        assert not out.exists()
        return False
    out.unlink()
    return True


@pytest.mark.parametrize("target", ["pytorch", "rmm", "minimalloc", "stalloc"])
def test_a_damaged_file_is_refused_or_read(tmp_path: Path, target: str) -> None:
    convert(write(tmp_path / "made.hrtrace", record(3, events=60).rows), tmp_path / "whole", target)
    whole = (tmp_path / "whole").read_bytes()
    assert read_or_refuse(tmp_path / "file", whole)
    chance = random.Random(SEED)
    passed = []
    for _ in range(400):
        content = whole
        for _ in range(chance.randrange(1, 4)):
            content = damaged(content, chance) if content else content
        passed.append(read_or_refuse(tmp_path / "file", content))
    assert any(passed) and not all(passed)


@pytest.mark.parametrize("target", ["pytorch", "rmm", "minimalloc", "stalloc"])
def test_a_file_cut_off_anywhere_is_refused_or_read(tmp_path: Path, target: str) -> None:
    convert(write(tmp_path / "made.hrtrace", record(3, events=20).rows), tmp_path / "whole", target)
    whole = (tmp_path / "whole").read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 150)):
        read_or_refuse(tmp_path / "file", whole[:length])


def with_an_odd_part(value: Any, chance: random.Random) -> Any:
    """The same nest of containers with something else in one place."""
    odd = [None, "x", -1, 1 << 80, 1 << 62, 0, 1.5, float("inf"), [], {}, (), True, b"bytes", [[]], {"a": 1}]
    if isinstance(value, dict) and value and chance.random() < 0.95:
        key = chance.choice(list(value))
        rest = dict(value)
        if chance.random() < 0.05:
            del rest[key]
        else:
            rest[key] = with_an_odd_part(value[key], chance)
        return rest
    if isinstance(value, list) and value and chance.random() < 0.95:
        index = chance.randrange(len(value))
        return [*value[:index], with_an_odd_part(value[index], chance), *value[index + 1 :]]
    return chance.choice(odd)


def test_a_snapshot_with_an_odd_part_is_refused_or_read(tmp_path: Path) -> None:
    convert(write(tmp_path / "made.hrtrace", record(3, events=30).rows), tmp_path / "whole", "pytorch")
    snapshot = pickle.loads((tmp_path / "whole").read_bytes())
    chance = random.Random(SEED)
    for _ in range(1500):
        content = snapshot
        for _ in range(chance.randrange(1, 3)):
            content = with_an_odd_part(content, chance)
        read_or_refuse(tmp_path / "file", pickle.dumps(content, protocol=4))


def test_a_snapshot_whose_texts_grow_when_printed_is_refused_in_time(tmp_path: Path) -> None:
    # Each level holds the one before twice: printed, the last would be 2^60 characters.
    nest: list[Any] = []
    for _ in range(60):
        nest = [nest, nest]
    frames = [{"filename": "a.py", "line": nest, "name": nest}]
    event = {"action": "alloc", "addr": nest, "size": 1, "stream": 0, "time_us": 0, "frames": frames}
    assert not read_or_refuse(tmp_path / "file", pickle.dumps({"device_traces": [[event]]}, protocol=4))
    assert read_or_refuse(tmp_path / "file", pickle.dumps({"device_traces": [[event | {"addr": 0}]]}, protocol=4))


@pytest.mark.parametrize("text", [
    b"Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0x1,\x00,0\n",
    b'Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,"' + b"x" * 200_000 + b'",1,0\n',
    b"Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0x1," + b"9" * 5000 + b",0\n",
    b"Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0x1,-5,0\n",
    b"id,lower,upper,size\n1,0," + b"9" * 30 + b",5\n",
    b"1 a " + b"9" * 5000 + b" 0\n",
    b"1 a \xc2\xb2 0\n",
    b"1 a 5 0\xff\n",
])  # fmt: skip
def test_odd_numbers_and_texts_are_refused(tmp_path: Path, text: bytes) -> None:
    assert not read_or_refuse(tmp_path / "file", text)


def test_an_infinite_pointer_or_time_is_no_trouble(tmp_path: Path) -> None:
    huge = b"f" * 1000
    log = b"Thread,Time,Action,Pointer,Size,Stream\n1,99:99:99.999999,allocate,0x" + huge + b",5,0\n"
    assert read_or_refuse(tmp_path / "file", log)


# Headroom's own format, as Python reads it.


def read(content: bytes) -> list[Any] | None:
    try:
        reader = TraceReader(io.BytesIO(content))
        return [{name: values.tolist() for name, values in chunk.items()} for chunk in reader] + reader.op_names
    except TraceFileError:
        return None


def test_a_trace_with_one_wrong_bit_never_passes_for_another() -> None:
    whole = trace_bytes(record(3, events=60).rows)
    chance = random.Random(SEED)
    for at in range(len(whole)):
        content = bytearray(whole)
        content[at] ^= 1 << chance.randrange(8)
        assert read(bytes(content)) in (None, read(whole)), f"byte {at}"


def test_a_trace_cut_off_anywhere_is_refused() -> None:
    whole = trace_bytes(record(3, events=60).rows)
    assert all(read(whole[:length]) is None for length in range(len(whole)))


def blocks_of(content: bytes) -> list[tuple[bytes, bytes]]:
    blocks = []
    at = len(MAGIC)
    while at < len(content):
        kind, size = PREFIX.unpack_from(content, at)
        at += PREFIX.size
        blocks.append((kind, zstandard.ZstdDecompressor().decompress(content[at : at + size])))
        at += size
    return blocks


def damaged_before_compression(chance: random.Random) -> Iterator[bytes]:
    """Traces with sound checksums."""
    blocks = blocks_of(trace_bytes(record(3, events=60).rows))
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    while True:
        victim = chance.choice([*range(len(blocks)), 2, 2])
        content = MAGIC
        for index, (kind, text) in enumerate(blocks):
            frame = compressor.compress(damaged(text, chance) if index == victim else text)
            content += PREFIX.pack(kind, len(frame)) + frame
        yield content


def test_a_trace_damaged_before_compression_is_refused_or_read() -> None:
    passed = [read(content) is not None for content, _ in zip(damaged_before_compression(random.Random(SEED)), range(2000))]
    assert any(passed) and not all(passed)


@pytest.mark.parametrize("target", ["pytorch", "rmm", "minimalloc", "stalloc"])
def test_a_damaged_trace_is_refused_or_exported(tmp_path: Path, target: str) -> None:
    file, out = tmp_path / "file", tmp_path / "out"
    refused = exported = 0
    for content, _ in zip(damaged_before_compression(random.Random(SEED)), range(400)):
        file.write_bytes(content)
        try:
            convert(file, out, target)
            exported += 1
        except REFUSALS:
            refused += 1
    assert refused and exported
