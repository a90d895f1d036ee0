"""headroom run --against: two builds in one run, back to back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import COUNTING, PROGRAM, Headroom, run_info, samples, suite_of

# Another build: the same program, whose results go through Python code.
OTHER = """#!/usr/bin/python3
import json, os, subprocess, sys
if sys.argv[1] != "sample":
    sys.exit(subprocess.run([{program!r}, *sys.argv[1:]]).returncode)
read, write = os.pipe()
code = subprocess.run([{program!r}, *sys.argv[1:-1], str(write)], pass_fds=[write]).returncode
os.close(write)
sample = json.loads(os.fdopen(read).read())
{change}
os.write(3, (json.dumps(sample) + "\\n").encode())
sys.exit(code)
"""


@pytest.fixture
def suite(headroom: Headroom) -> str:
    return headroom.write("pair.toml", suite_of("pair", COUNTING))


def other(headroom: Headroom, change: str) -> str:
    program = headroom.place / "other"
    program.write_text(OTHER.format(program=PROGRAM, change=change))
    program.chmod(0o755)
    return str(program)


def bytes_times(factor: float) -> str:
    return f'moments = sample["memory"]["reserved_bytes"]\nfor m in moments: moments[m] = int({factor} * moments[m])'


def matrix(run: Path) -> dict[tuple[str, str], dict]:
    entries = json.loads((run / "verdicts.json").read_text())["matrix"]
    return {(entry["experiment"], entry["arm"]): entry for entry in entries}


def test_every_cell_is_run_by_both_and_the_same_program_is_the_same(headroom: Headroom, suite: str) -> None:
    outcome = headroom("run", suite, "--against", PROGRAM)
    assert outcome.code == 0, outcome.errors
    run = headroom.only_run()
    assert [arm for _, arm in matrix(run)] == ["before", "after"] * 2
    comparisons = [entry["comparisons"] for (_, arm), entry in matrix(run).items() if arm == "after"]
    assert all(found["reserved_bytes.overall_peak"]["verdict"] == "SAME" for found in comparisons)
    programs = [arm.get("program") for experiment in run_info(run)["experiments"] for arm in experiment["arms"]]
    assert programs == [str(Path(PROGRAM).resolve()), None] * 2


def test_the_other_program_runs_one_of_the_arms(headroom: Headroom, suite: str) -> None:
    program = other(headroom, 'sample["parameter_count"] = 7')
    assert headroom("run", suite, "--against", program, "--samples-only").code == 0
    counts = {(s["arm"], s["parameter_count"] == 7) for s in samples(headroom.only_run())}
    assert counts == {("before", True), ("after", False)}


def test_a_build_that_takes_more_than_the_other_is_worse(headroom: Headroom, suite: str) -> None:
    outcome = headroom("run", suite, "--against", other(headroom, bytes_times(0.9)))
    assert outcome.code == 10
    worse = [line for line in outcome.output.splitlines() if line.startswith("worse: ")]
    assert len(worse) == 2
    assert all("reserved_bytes.overall_peak by +1" in line for line in worse)


def test_a_build_that_takes_less_is_not(headroom: Headroom, suite: str) -> None:
    assert headroom("run", suite, "--against", other(headroom, bytes_times(1.1))).code == 0


def test_a_result_that_only_the_other_has_is_worse(headroom: Headroom) -> None:
    small = headroom.write("pair.toml", suite_of("pair", COUNTING | {"device": "meta(capacity=2MiB)"}))
    template = headroom.write("whole.toml", suite_of("whole", COUNTING))
    assert headroom("run", template, "--samples-only").code == 0
    whole = headroom.only_run() / "samples.jsonl"
    program = other(
        headroom, f'cell = sample["cell"]\nsample = json.loads(open({str(whole)!r}).readline()); sample["cell"] = cell'
    )
    outcome = headroom("run", small, "--against", program)
    assert outcome.code == 10
    assert "ran out of memory" in outcome.output


def test_a_build_that_runs_another_cell_is_not_compared(headroom: Headroom, suite: str) -> None:
    outcome = headroom("run", suite, "--against", other(headroom, 'sample["cell"]["optimizer"] = "adam"'))
    assert outcome.code == 0, outcome.errors
    entries = matrix(headroom.only_run())
    assert {entry["status"] for (_, arm), entry in entries.items() if arm == "before"} == {"unsupported"}


def test_what_is_no_program_is_told(headroom: Headroom, suite: str) -> None:
    outcome = headroom("run", suite, "--against", "nowhere")
    assert (outcome.code, "--against nowhere" in outcome.errors) == (2, True)
