"""Two stored runs: exact metrics cell by cell, and nothing about times."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import Headroom, run_info, samples


@pytest.fixture
def run(headroom: Headroom, counting: str) -> Path:
    assert headroom("run", counting, "--samples-only", "--seed", "3").code == 0
    return headroom.only_run()


def altered(run: Path, change: Callable[[dict[str, Any]], None], arm: str = "malloc") -> str:
    """A copy of the run in which every sample of one arm of the first experiment is changed."""
    other = run.parent / "other"
    shutil.copytree(run, other)
    records = samples(run)
    first = records[0]["experiment"]
    for record in records:
        if record["arm"] == arm and record["experiment"] == first:
            change(record)
    (other / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(other)


def grow(byte_count: int) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        record["memory"]["reserved_bytes"]["steady_peak"] += byte_count

    return change


def test_a_run_is_the_same_as_itself_and_says_nothing_of_times(headroom: Headroom, run: Path) -> None:
    outcome = headroom("compare", str(run), str(run), "--fail-on", "worse")
    assert outcome.code == 0, outcome.errors
    assert "12 of 12 cells in both are the same to the last bit." in outcome.output
    assert "45.9 %" in outcome.last_line


def test_a_regression_is_told_in_bytes_and_fails_only_when_asked_to(headroom: Headroom, run: Path) -> None:
    other = altered(run, grow(3_000_000))
    outcome = headroom("compare", str(run), other)
    assert outcome.code == 0
    (line,) = [line for line in outcome.output.splitlines() if line.startswith("worse: ")]
    assert "[malloc]" in line
    assert "reserved bytes at the peak after warm-up" in line
    assert "+3000000 bytes" in line
    assert headroom("compare", str(run), other, "--fail-on", "worse").code == 10
    assert headroom("compare", other, str(run), "--fail-on", "worse").code == 0
    assert "better: " in headroom("compare", other, str(run)).output


def test_a_change_inside_the_margin_is_told_and_is_no_regression(headroom: Headroom, run: Path) -> None:
    outcome = headroom("compare", str(run), altered(run, grow(512)), "--fail-on", "worse")
    assert outcome.code == 0
    assert "changed: " in outcome.output
    assert "+512 bytes" in outcome.output


def test_a_cell_that_found_no_room_is_a_regression(headroom: Headroom, run: Path) -> None:
    def fail(record: dict[str, Any]) -> None:
        record.update(status="oom", reason="too little")

    outcome = headroom("compare", str(run), altered(run, fail), "--fail-on", "worse")
    assert outcome.code == 10
    assert "ran out of memory" in outcome.output


def test_bytes_under_other_rules_are_not_compared(headroom: Headroom, run: Path) -> None:
    other = altered(run, lambda record: (grow(3_000_000)(record), record.update(lowering_rules="dense of another kind")))
    outcome = headroom("compare", str(run), other, "--fail-on", "worse")
    assert outcome.code == 0
    assert "not comparable: " in outcome.output
    assert "dense of another kind" in outcome.output


def test_missing_and_new_cells_are_listed(headroom: Headroom, counting: str, run: Path) -> None:
    only = ["-a", "allocator=malloc", "-a", "allocator=bfc(growth=on,limit=128MiB)"]
    assert headroom("run", counting, "--samples-only", "--out", "other", *only).code == 0
    (other,) = (headroom.place / "other").iterdir()
    outcome = headroom("compare", str(run), str(other), "--fail-on", "worse")
    assert outcome.code == 0
    assert outcome.output.count("missing: ") == 8
    assert outcome.output.count("new: ") == 4
    assert "new: counting/small/workload=resnet(batch=2,depth=18,width=8) [bfc(growth=on,limit=128MiB)]." in outcome.output
    assert "4 of 4 cells in both are the same" in outcome.output


def test_environments_that_differ_are_told(headroom: Headroom, run: Path) -> None:
    other = altered(run, lambda record: None)
    info = run_info(run)
    info["machine"]["cpu"] = "abacus"
    info["libraries"]["onednn"] = "9"
    (Path(other) / "run.json").write_text(json.dumps(info))
    outcome = headroom("compare", str(run), other)
    assert "and is 'abacus'." in outcome.output
    assert "the library onednn was" in outcome.output


def test_programs_get_json(headroom: Headroom, run: Path) -> None:
    outcome = headroom("compare", str(run), altered(run, grow(3_000_000)), "--json", "--fail-on", "worse")
    assert outcome.code == 10
    changes = json.loads(outcome.output)
    assert changes["regression"] is True
    (cell,) = [cell for cell in changes["cells"] if cell["outcome"] == "worse"]
    (metric,) = [change for change in cell["changes"] if change["metric"] == "reserved_bytes.steady_peak"]
    assert metric["after"] - metric["before"] == 3_000_000
    assert all(change["unit"] != "ns" for cell in changes["cells"] for change in cell["changes"])


def test_failing_on_anything_else_is_a_usage_error(headroom: Headroom, run: Path) -> None:
    assert headroom("compare", str(run), str(run), "--fail-on", "better").code == 2
    assert headroom("compare", str(run)).code == 2
