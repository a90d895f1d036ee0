"""headroom export: other programs read the exported history, and it means the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Headroom, samples


@pytest.fixture
def trace(headroom: Headroom, counting: str) -> str:
    """The trace of a recorded cell."""
    assert headroom("run", counting, "--samples-only", "--filter", "allocator=bfc(growth=on)").code == 0
    run = headroom.only_run()
    return str(run / next(sample["trace_file"] for sample in samples(run) if sample["trace_file"]))


def replayed(headroom: Headroom, file: str) -> dict[str, Any]:
    outcome = headroom("replay", file, "--capacity", "1GiB", "--allocator", "bfc(growth=on)", "--json")
    assert outcome.code == 0, outcome.errors
    return json.loads(outcome.output)


@pytest.mark.parametrize("target", ["pytorch", "rmm", "minimalloc", "stalloc"])
def test_an_exported_run_replays_as_the_run_itself(headroom: Headroom, trace: str, target: str) -> None:
    outcome = headroom("export", trace, "--to", target, "-o", "exported")
    assert outcome.code == 0, outcome.errors
    assert outcome.last_line == "exported"
    own, other = replayed(headroom, trace), replayed(headroom, "exported")
    assert other["requests"] == own["requests"]
    assert other["peak_live_bytes"] == own["peak_live_bytes"]
    (ours,), (theirs,) = own["strategies"], other["strategies"]
    assert theirs["reserved_bytes_peak"] == ours["reserved_bytes_peak"]
    assert theirs["splits"] == ours["splits"]


def test_a_history_of_another_program_becomes_a_trace(headroom: Headroom) -> None:
    history = headroom.write("history.txt", "1 a 1048576 0\n1 b 4096 0\n0 a 1048576 0\n")
    assert headroom("export", history, "--to", "headroom", "-o", "history.hrtrace").code == 0
    assert (headroom.place / "history.hrtrace").read_bytes().startswith(b"\x89HRTRACE")
    assert replayed(headroom, "history.hrtrace")["requests"] == 3


def test_one_foreign_format_becomes_another(headroom: Headroom) -> None:
    history = headroom.write("history.txt", "1 a 1048576 0\n0 a 1048576 0\n")
    assert headroom("export", history, "--to", "minimalloc", "-o", "buffers.csv").code == 0
    assert (headroom.place / "buffers.csv").read_text() == "id,lower,upper,size\n1,0,1,1048576\n"


def test_an_unknown_format_is_refused_with_those_there_are(headroom: Headroom) -> None:
    history = headroom.write("history.txt", "1 a 1048576 0\n")
    outcome = headroom("export", history, "--to", "tensorflow", "-o", "out")
    assert outcome.code == 2
    assert "tensorflow" in outcome.errors and "pytorch" in outcome.errors


def refused(headroom: Headroom, file: str, out: str, *words: str) -> None:
    outcome = headroom("export", file, "--to", "stalloc", "-o", out)
    assert outcome.code == 2
    assert all(word in outcome.errors for word in words), outcome.errors
    assert "Traceback" not in outcome.errors
    assert not Path(headroom.place / out).exists()


def test_a_place_that_cannot_be_written_is_named(headroom: Headroom) -> None:
    refused(headroom, headroom.write("history.txt", "1 a 5 0\n"), "no/such/folder/out", "no/such/folder/out")


def test_a_damaged_trace_is_named_and_nothing_is_written(headroom: Headroom, trace: str) -> None:
    content = bytearray(Path(trace).read_bytes())
    content[len(content) // 2] ^= 1
    (headroom.place / "damaged.hrtrace").write_bytes(content)
    refused(headroom, "damaged.hrtrace", "out", "damaged.hrtrace", "is damaged", "block")
    assert headroom("replay", "damaged.hrtrace", "--capacity", "1GiB").code == 2


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(headroom: Headroom, trace: str) -> None:
    for place in ("nowhere/snapshot.pickle", "/proc/snapshot.pickle"):
        outcome = headroom("export", trace, "--to", "pytorch", "-o", place)
        assert outcome.code == 2
        assert f"{place}: cannot be written: " in outcome.errors and "unfinished" not in outcome.errors
        assert "a directory that can be written to" in outcome.errors


@pytest.mark.parametrize(("content", "told"), [(b"", "is empty"), (b"\x1f\x8b\x08\0torn", "unpack it first")])
def test_a_file_that_is_no_history_is_told_why(headroom: Headroom, content: bytes, told: str) -> None:
    (headroom.place / "snapshot.pickle").write_bytes(content)
    for command in (("replay",), ("leaks",), ("export", "--to", "rmm", "-o", "out.csv")):
        outcome = headroom(command[0], "snapshot.pickle", *command[1:])
        assert outcome.code == 2 and outcome.errors.startswith("headroom: ")
        assert "snapshot.pickle: " in outcome.errors and told in outcome.errors
