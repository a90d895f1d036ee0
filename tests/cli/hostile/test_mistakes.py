"""Mistakes of a user end in exit status 2 with a reason, not in a fault of the program."""

from __future__ import annotations

import resource

import pytest
from conftest import Headroom


@pytest.mark.parametrize("value", ["nan", "inf", "2", "1", "-1"])
def test_a_sparsity_that_is_no_share_is_refused(headroom: Headroom, counting: str, value: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", f"pruning=magnitude(sparsity={value})")
    assert outcome.code == 2
    assert "sparsity" in outcome.errors


@pytest.mark.parametrize("schedule", ["begin=0", "begin=-1", "begin=3,end=2", "every=0", "initial=1", "initial=-0.5"])
def test_a_schedule_that_is_none_is_refused(headroom: Headroom, counting: str, schedule: str) -> None:
    outcome = headroom("run", counting, "--samples-only", "-a", f"pruning=magnitude({schedule})")
    assert outcome.code == 2
    assert "steps count from 1" in outcome.errors or "initial is the share" in outcome.errors


def history(headroom: Headroom) -> str:
    return headroom.write("history.txt", "".join(f"{on} a{i} 4096 0\n" for i in range(100) for on in (1, 0)))


@pytest.mark.parametrize("command", [["replay", "--capacity", "1GiB"], ["leaks"]], ids=["replay", "leaks"])
def test_a_directory_for_temporary_files_that_is_missing_is_named(headroom: Headroom, command: list[str]) -> None:
    outcome = headroom(*command, history(headroom), TMPDIR="/no/such/place")
    assert outcome.code == 2
    assert "TMPDIR=/no/such/place: there is no such directory" in outcome.errors


@pytest.mark.parametrize("files", range(4, 12))
@pytest.mark.parametrize("command", ["replay", "doctor", "run"])
def test_too_few_open_files_are_told_of(headroom: Headroom, counting: str, command: str, files: int) -> None:
    arguments = {"replay": ["replay", history(headroom), "--capacity", "1GiB", "--allocator", "malloc"],
                 "doctor": ["doctor"], "run": ["run", counting, "--samples-only", "--max-pairs", "1"]}[command]
    outcome = headroom(*arguments, before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    assert outcome.code in (0, 2), outcome.errors
    assert outcome.code == 0 or "Too many open files" in outcome.errors or "No Python" in outcome.errors


@pytest.mark.parametrize("size", [2**60, 2**61, 2**62 - 1, 2**62])
@pytest.mark.parametrize("columns", ["", ",offset", ",hint", ",alignment"])
def test_sizes_of_a_history_that_no_device_has_are_refused(headroom: Headroom, size: int, columns: str) -> None:
    more = f",{size}" if columns else ""
    rows = "".join(f"{i},{i},{i + 2},{size}{more}\n" for i in range(4))
    outcome = headroom("replay", headroom.write("huge.csv", f"id,lower,upper,size{columns}\n{rows}"),
                       "--capacity", "1GiB")
    assert outcome.code == 2, outcome.errors
    assert "huge.csv: " in outcome.errors and "fault" not in outcome.errors


@pytest.mark.parametrize("columns", ["offset", "hint", "alignment"])
@pytest.mark.parametrize("value", [2**60, 2**62 - 1, 2**62])
def test_places_beyond_any_device_are_answered(headroom: Headroom, columns: str, value: int) -> None:
    rows = "".join(f"{i},{i},{i + 2},100,{value}\n" for i in range(4))
    outcome = headroom("replay", headroom.write("far.csv", f"id,lower,upper,size,{columns}\n{rows}"),
                       "--capacity", "1GiB", "--allocator", "malloc")
    assert outcome.code in (0, 2), outcome.errors


@pytest.mark.parametrize("allocator", ["expandable", "stitching"])
def test_a_page_larger_than_a_device_is_refused(headroom: Headroom, allocator: str) -> None:
    outcome = headroom("plan", "resnet(batch=2,depth=18,width=8)", "--device", "1GiB",
                       "-a", f"allocator={allocator}(page=1024TiB)")
    assert outcome.code == 2
    assert "page must be a multiple of" in outcome.errors
