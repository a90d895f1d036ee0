"""A snapshot is what PyTorch's viewer takes: it starts from `segments`, the state at the end, and
undoes `device_traces` event by event. Nothing may be missing on the way."""

from __future__ import annotations

import pickle
import pickletools
from pathlib import Path
from typing import Any

import pytest
from made_up import Recorder, record, trace_bytes

from harness.trace.formats.__main__ import convert

# Opcodes that the viewer's own unpickler knows.
KNOWN_TO_THE_VIEWER = {
    "PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET",
    "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "DICT", "LIST", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "SETITEM", "SETITEMS", "APPEND", "APPENDS", "SHORT_BINUNICODE", "BINUNICODE",
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE",
}  # fmt: skip


def exported(place: Path, rows: list[dict[str, int]]) -> bytes:
    (place / "made.hrtrace").write_bytes(trace_bytes(rows))
    convert(place / "made.hrtrace", place / "snapshot.pickle", "pytorch")
    return (place / "snapshot.pickle").read_bytes()


@pytest.fixture(params=["segments known", "no segments", "no addresses"])
def rows(request: pytest.FixtureRequest) -> list[dict[str, int]]:
    recorded = record(9).rows
    if request.param == "segments known":
        return recorded
    without = [row for row in recorded if row["kind"] in (0, 1, 4)]
    return without if request.param == "no segments" else [dict(row, address=0) for row in without]


def test_the_viewer_can_unpickle_it(tmp_path: Path, rows: list[dict[str, int]]) -> None:
    content = exported(tmp_path, rows)
    assert {opcode.name for opcode, _, _ in pickletools.genops(content)} <= KNOWN_TO_THE_VIEWER
    assert all(not isinstance(number, int) or -(2**63) <= number < 2**63 for _, number, _ in pickletools.genops(content))


def test_it_has_the_keys_of_a_snapshot(tmp_path: Path, rows: list[dict[str, int]]) -> None:
    snapshot = pickle.loads(exported(tmp_path, rows))
    assert snapshot.keys() >= {"segments", "device_traces", "allocator_settings", "external_annotations"}
    (trace,) = snapshot["device_traces"]
    for event in trace:
        assert event.keys() >= {"action", "size", "stream", "time_us", "frames"}
        assert ("device_free" if event["action"] == "oom" else "addr") in event
        assert all(frame.keys() == {"filename", "line", "name"} for frame in event["frames"])
    for segment in snapshot["segments"]:
        assert segment.keys() >= {
            "device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
            "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks",
        }  # fmt: skip


def test_blocks_tile_their_segments(tmp_path: Path, rows: list[dict[str, int]]) -> None:
    segments = pickle.loads(exported(tmp_path, rows))["segments"]
    assert segments
    for segment in segments:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] > 0
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        active = [block for block in segment["blocks"] if block["state"] == "active_allocated"]
        assert segment["allocated_size"] == sum(block["size"] for block in active)
        assert segment["requested_size"] == sum(block["requested_size"] for block in active)


def bytes_of(ranges: list[tuple[int, int]]) -> set[int]:
    """In steps of 512 bytes, on which everything here lies."""
    return {at for begin, size in ranges for at in range(begin // 512, (begin + size - 1) // 512 + 1)}


def test_going_backwards_every_block_lies_in_a_segment(tmp_path: Path, rows: list[dict[str, int]]) -> None:
    snapshot = pickle.loads(exported(tmp_path, rows))
    mapped = bytes_of([(segment["address"], segment["total_size"]) for segment in snapshot["segments"]])
    blocks = {
        block["address"]: block["size"]
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    knows_segments = any("segment" in event["action"] for event in snapshot["device_traces"][0])
    for event in reversed(snapshot["device_traces"][0]):
        undo(event, mapped, blocks)
        assert bytes_of(list(blocks.items())) <= mapped
    assert blocks == {}
    assert not (knows_segments and mapped)


def undo(event: dict[str, Any], mapped: set[int], blocks: dict[int, int]) -> None:
    if event["action"] == "alloc":
        del blocks[event["addr"]]
    elif event["action"] == "free_completed":
        assert event["addr"] not in blocks
        blocks[event["addr"]] = event["size"]
    elif event["action"] in ("segment_alloc", "segment_map"):
        assert bytes_of([(event["addr"], event["size"])]) <= mapped
        mapped -= bytes_of([(event["addr"], event["size"])])
    elif event["action"] in ("segment_free", "segment_unmap"):
        mapped |= bytes_of([(event["addr"], event["size"])])


def test_a_free_is_requested_and_completed_at_once(tmp_path: Path) -> None:
    (trace,) = pickle.loads(exported(tmp_path, record(9).rows))["device_traces"]
    for first, second in zip(trace, trace[1:]):
        assert (first["action"] == "free_requested") == (second["action"] == "free_completed")
        if first["action"] == "free_requested":
            assert first["addr"] == second["addr"]


def test_a_refusal_tells_what_the_device_had_free(tmp_path: Path) -> None:
    (trace,) = pickle.loads(exported(tmp_path, record(9).rows))["device_traces"]
    (refused,) = [event for event in trace if event["action"] == "oom"]
    assert refused["device_free"] == (1024 - 4 - 4) * 2**20


def test_a_segment_that_does_not_hold_its_blocks_is_not_told(tmp_path: Path) -> None:
    recorder = Recorder(1)
    recorder.segment("segment_alloc", 1, 2**21, 2**21)
    recorder.alloc(2**30, 4096)
    snapshot = pickle.loads(exported(tmp_path, recorder.rows))
    assert [event["action"] for event in snapshot["device_traces"][0]] == ["alloc"]
    assert [segment["address"] for segment in snapshot["segments"]] == [2**30]
