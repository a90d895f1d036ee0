"""What changed between two stored runs, and between the peaks of two memory histories."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import Headroom, record_of, run_info, samples

MIB = 1 << 20


@pytest.fixture
def run(headroom: Headroom, counting: str) -> Path:
    assert headroom("run", counting, "--samples-only", "--seed", "3").code == 0
    return headroom.only_run()


def altered(run: Path, change: Callable[[dict[str, Any]], None], arm: str = "malloc") -> str:
    """A copy of the run in which every sample of one configuration of the first experiment is changed."""
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
    assert outcome.output.startswith("SAME: 12 configurations are in both runs: 12 the same to the last bit.\n")
    assert "45.9 %" in outcome.last_line


def test_a_regression_is_told_in_bytes_and_fails_only_when_asked_to(headroom: Headroom, run: Path) -> None:
    other = altered(run, grow(3_000_000))
    outcome = headroom("compare", str(run), other)
    assert outcome.code == 0
    assert outcome.output.startswith("WORSE: 12 configurations are in both runs: 1 worse by more than 1 %, 11 the same")
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


def test_a_configuration_that_ran_out_of_memory_is_a_regression(headroom: Headroom, run: Path) -> None:
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


def test_missing_and_new_configurations_are_listed(headroom: Headroom, counting: str, run: Path) -> None:
    only = ["-a", "allocator=malloc", "-a", "allocator=bfc(growth=on,limit=128MiB)"]
    assert headroom("run", counting, "--samples-only", "--out", "other", *only).code == 0
    (other,) = (headroom.place / "other").iterdir()
    short = headroom("compare", str(run), str(other)).output
    assert "8 configurations of the first run only and 4 of the second" in short and "missing: " not in short
    outcome = headroom("compare", str(run), str(other), "--all", "--fail-on", "worse")
    assert outcome.code == 0
    assert outcome.output.count("missing: ") == 8
    assert outcome.output.count("new: ") == 4
    assert "new: counting/small/workload=resnet(batch=2,depth=18,width=8) [bfc(growth=on,limit=128MiB)]." in outcome.output
    assert outcome.output.startswith("SAME: 4 configurations are in both runs")


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


@pytest.fixture
def snapshot(headroom: Headroom) -> Callable[..., str]:
    """A memory snapshot of PyTorch in which lines of train.py hold MiB at the peak."""

    def write(name: str, **lines: int) -> str:
        events, address = [], 4096
        for place, mib in lines.items():
            function, line = place.rsplit("_", 1)
            frames = [{"filename": "/home/me/train.py", "line": int(line), "name": function}]
            events.append({"action": "alloc", "addr": address, "size": mib * MIB, "stream": 0, "frames": frames})
            address += mib * MIB
        (headroom.place / name).write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}))
        return name

    return write


def test_the_first_line_says_how_the_peak_of_two_snapshots_changed(
    headroom: Headroom, snapshot: Callable[..., str]
) -> None:
    before, after = snapshot("before.pickle", loss_7=60, load_9=40), snapshot("after.pickle", loss_7=85, load_9=40)
    outcome = headroom("compare", before, after)
    assert outcome.code == 0, outcome.errors
    first, *rest = outcome.output.splitlines()
    assert first == "GREW: allocated at the peak 100.00 MiB → 125.00 MiB, +25.00 MiB (+25.0 %)."
    (line,) = [line for line in rest if "train.py" in line]
    assert line.split() == "+25.00 MiB 60.00 MiB → 85.00 MiB train.py:7 loss".split()
    assert headroom("compare", after, before).output.startswith("SHRANK: ")
    assert headroom("compare", before, before).output.startswith("SAME: ")


def test_only_a_higher_peak_fails_and_only_when_asked_to(headroom: Headroom, snapshot: Callable[..., str]) -> None:
    less, more = snapshot("less.pickle", loss_7=60), snapshot("more.pickle", loss_7=61)
    assert headroom("compare", less, more).code == 0
    assert headroom("compare", less, more, "--fail-on", "worse").code == 10
    assert headroom("compare", more, less, "--fail-on", "worse").code == 0


def test_five_lines_are_told_and_all_of_them_when_asked_for(headroom: Headroom, snapshot: Callable[..., str]) -> None:
    before = snapshot("before.pickle", **{f"layer_{line}": 10 for line in range(1, 9)})
    after = snapshot("after.pickle", **{f"layer_{line}": 10 + line for line in range(1, 9)})
    told = headroom("compare", before, after).output
    assert told.count("train.py") == 5 and "train.py:8 layer" in told and "5 of 8 changes shown" in told
    assert headroom("compare", before, after, "--all").output.count("train.py") == 8


def test_lines_that_moved_are_the_same_lines(headroom: Headroom, snapshot: Callable[..., str]) -> None:
    before = snapshot("before.pickle", forward_10=8, forward_11=32, forward_12=16)
    after = snapshot("after.pickle", forward_10=8, forward_11=4, forward_12=32, forward_13=16)
    found = record_of(headroom("compare", before, after, "--json").output)
    assert found["parts"] == [{"kind": "line", "name": "train.py:11 forward", "before_bytes": 0, "now_bytes": 4 * MIB}]
    assert found["grew"] is True


def test_traces_of_a_run_are_compared_with_the_peaks_that_the_run_recorded(headroom: Headroom, run: Path) -> None:
    first, second = [sample for sample in samples(run) if sample["trace_file"]][:2]
    found = record_of(headroom("compare", str(run / first["trace_file"]), str(run / second["trace_file"]), "--json").output)
    for sample, key in ((first, "before_bytes"), (second, "now_bytes")):
        for figure in ("allocated", "reserved"):
            assert found[figure][key] == sample["memory"][f"{figure}_bytes"]["overall_peak"]


def test_two_runs_of_headroom_gpu_are_compared_by_their_figures(headroom: Headroom) -> None:
    def figures(name: str, mib: int) -> str:
        (headroom.place / name).mkdir()
        device = {"peak_allocated_bytes": mib * MIB, "roles": [{"name": "weights", "bytes": mib * MIB}], "modules": [],
                  "lines": [{"name": "/home/me/train.py:5", "bytes": mib * MIB}]}
        (headroom.place / name / "gpu.json").write_text(
            json.dumps({"peak_bytes": 2 * mib * MIB, "frameworks": [{"devices": [device]}]}))
        return name

    outcome = headroom("compare", figures("a", 32), figures("b", 48))
    assert outcome.output.startswith("GREW: allocated at the peak 32.00 MiB → 48.00 MiB")
    assert "reserved at the peak 64.00 MiB → 96.00 MiB" in outcome.output
    assert "/home/me/train.py:5" in outcome.output


def test_what_is_not_of_a_kind_is_not_compared(headroom: Headroom, run: Path, snapshot: Callable[..., str]) -> None:
    outcome = headroom("compare", str(run), snapshot("one.pickle", loss_1=1))
    assert outcome.code == 2 and "compare two of a kind" in outcome.errors
    assert "no such file" in headroom("compare", "nowhere", "nowhere").errors
