"""What other programs' formats carry comes back as it was."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from made_up import events, record, there_and_back, write

from harness.trace.formats.__main__ import convert
from harness.trace.formats.history import Event


@pytest.fixture
def made(tmp_path: Path) -> Path:
    seed = random.randrange(2**32)
    print("seed", seed)
    return write(tmp_path / "made.hrtrace", record(seed).rows)


def only(fields: str, listed: list[Event]) -> list[tuple[Any, ...]]:
    return [tuple(getattr(event, name) for name in fields.split()) for event in listed]


def blocks(path: Path, *kinds: str) -> list[Event]:
    return [event for event in events(path) if event.kind in kinds]


def test_pytorch_carries_everything_but_the_rounding_of_blocks(made: Path) -> None:
    fields = "kind role phase stream id op step requested address time_ns"
    assert only(fields, there_and_back(made, "pytorch")) == only(fields, events(made))


def test_rmm_carries_requests_refusals_addresses_and_microseconds(made: Path) -> None:
    fields = "kind stream id requested address time_ns"
    assert only(fields, there_and_back(made, "rmm")) == only(fields, blocks(made, "alloc", "free", "oom"))


def test_stalloc_carries_requests_and_addresses(made: Path) -> None:
    fields = "kind stream id requested address"
    assert only(fields, there_and_back(made, "stalloc")) == only(fields, blocks(made, "alloc", "free"))


def test_minimalloc_carries_sizes_and_order_and_frees_the_rest_at_the_end(made: Path) -> None:
    back = there_and_back(made, "minimalloc")
    expected = only("kind id requested", blocks(made, "alloc", "free"))
    assert only("kind id requested", back)[: len(expected)] == expected
    live = {event.id for event in blocks(made, "alloc")} - {event.id for event in blocks(made, "free")}
    rest = back[len(expected) :]
    assert live and {event.id for event in rest} == live
    assert all(event.kind == "free" for event in rest)


def test_addresses_are_made_up_where_a_history_has_none(tmp_path: Path) -> None:
    rows = [dict(row, address=0) for row in record(5).rows]
    listed = events(write(tmp_path / "made.hrtrace", rows))
    live: dict[int, tuple[int, int]] = {}
    for event in listed:
        if event.kind == "free":
            assert live.pop(event.id)[0] == event.address
        elif event.kind == "alloc":
            end = event.address + event.requested
            assert all(end <= begin or last <= event.address for begin, last in live.values())
            live[event.id] = (event.address, end)


def test_blocks_of_no_bytes_are_left_out(tmp_path: Path) -> None:
    text = tmp_path / "history.txt"
    text.write_text("1 a 0 0\n1 b 5 0\n0 a 0 0\n0 b 5 0\n")
    for target in ("rmm", "pytorch", "minimalloc", "stalloc"):
        trace = tmp_path / "trace.hrtrace"
        convert(text, trace, "headroom")
        assert only("kind requested", there_and_back(trace, target)) == [("alloc", 5), ("free", 5)]
