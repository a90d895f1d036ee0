"""What the first screen asks, and what it says of the times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixture import cell_of, run_of, sample_of
from fixture_verdicts import claim_of, part_of

from reports.data.read import RunData
from reports.views.first_screen.summary import Summary, build_summary
from reports.views.page import Page


def summary(samples: list[dict[str, Any]], **changes: Any) -> Summary:
    verdicts = {"claims": [], "matrix": [], "counts": {}, "failures": [], **changes}
    return build_summary(Page(RunData(Path("nowhere"), run_of(0), samples, verdicts)))


def instrument(sensitivity: str, calibration: str, alarms: int = 0) -> dict[str, Any]:
    return {
        "sensitivity": {"status": sensitivity, "why": "all effects were seen"},
        "calibration": {"status": calibration, "why": "one comparison so far", "aa_comparisons": 1, "false_alarms": alarms},
    }


def claim(name: str) -> dict[str, Any]:
    return claim_of(name, f"Title of {name}", "It says so.", "INCONCLUSIVE", [part_of("part", "It is so.", (None,) * 3 + (1,), [])])


def timed(device: str) -> dict[str, Any]:
    return sample_of(cell_of(device, 4, "bfc"), "times", "bfc", 0, step_time_ns=[1, 1], trace_file=None, memory=None)


def test_it_asks_what_was_asked() -> None:
    states = instrument("not tested", "not yet calibrated")
    assert summary([], claims=[claim("S1")], **states).question == "Does it hold? “Title of S1”"
    assert summary([], claims=[claim("S1"), claim("S2")], **states).question.startswith("Do 2 published claims")
    assert summary([], headline="Nothing compared.", **states).question == "Nothing compared."


@pytest.mark.parametrize(
    ("sensitivity", "calibration", "answer"),
    [
        ("sensitive", "calibrated", "Yes"),
        ("insensitive", "calibrated", "No:"),
        ("sensitive", "out of calibration", "No:"),
        ("sensitive", "not yet calibrated", "Yes, as far as checked: All effects were seen. One comparison so far."),
        ("not tested", "not yet calibrated", "Not checked enough: All effects were seen. One comparison so far. `headroom selftest`"),
    ],
)
def test_times_are_trusted_when_both_checks_passed(sensitivity: str, calibration: str, answer: str) -> None:
    assert summary([timed("host(capacity=4GiB)")], **instrument(sensitivity, calibration)).trust.startswith(answer)


def test_a_first_false_alarm_calls_for_care() -> None:
    states = instrument("sensitive", "not yet calibrated", alarms=1)
    assert summary([timed("host(capacity=4GiB)")], **states).trust.startswith("With care:")


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["run"], "headroom run made_up"),
        (["run", "quick", "--budget", "3m"], "headroom run quick --budget 3m"),
        (["/usr/bin/headroom", "run"], "/usr/bin/headroom run made_up"),
    ],
)
def test_the_command_that_reproduces_it_names_the_suite(argv: list[str], command: str) -> None:
    run = run_of(0) | {"argv": argv, "suite": "made_up"}
    verdicts = {"claims": [], "matrix": [], "counts": {}, "failures": [], **instrument("sensitive", "calibrated")}
    assert build_summary(Page(RunData(Path("nowhere"), run, [], verdicts))).command == command


def test_a_run_that_timed_no_training_has_no_times_to_trust() -> None:
    assert "no times" in summary([timed("meta(card=v100)")], **instrument("sensitive", "calibrated")).trust
