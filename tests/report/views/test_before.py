"""What the page says of the run before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
from fixture import run_of, write_fixture

from reports.data.read import read_run
from reports.views.before import Before, build_before


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_fixture(tmp_path / "now", batches=(4,))


def put_before(run: Path, name: str, change: Callable[[dict[str, Any]], object] = lambda record: None) -> Path:
    """A run of the same suite beside `run`, a year earlier."""
    record = run_of(1)
    record.update(run_id=name, started="2000-01-01T00:00:00Z")
    change(record)
    (run.parent / name).mkdir()
    (run.parent / name / "run.json").write_text(json.dumps(record))
    return run.parent / name


def told(run: Path) -> Before | None:
    return build_before(read_run(run))


def test_the_first_run_has_nothing_to_be_held_against(run: Path) -> None:
    assert told(run) is None


def test_two_alike_differ_in_nothing(run: Path) -> None:
    put_before(run, "before")
    before = told(run)
    assert before is not None and before.run_id == "before" and not before.differences


def test_each_change_of_machine_program_library_and_variable_is_named(run: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        record["machine"].update(kernel="0.0.1", ram_bytes=2**34, load_average_1m=9.0)
        record["headroom"].update(commit="f" * 40, dirty=True)
        record["libraries"]["oneDNN"] = "9.9"
        record["environment"] = {}

    put_before(run, "before", change)
    before = told(run)
    assert before is not None
    found = {what: (was.replace("\u202f", " "), now.replace("\u202f", " ")) for what, was, now in before.differences}
    assert found == {
        "kernel": ("0.0.1", "0.0.0-synthetic"),
        "memory": ("16 GiB", "24 GiB"),
        "commit": ("f" * 40, run_of(1)["headroom"]["commit"]),
        "uncommitted changes": ("yes", "no"),
        "oneDNN": ("9.9", run_of(1)["libraries"]["oneDNN"]),
        "OMP_NUM_THREADS": ("–", "2"),
    }


def test_the_last_run_of_the_same_suite_counts(run: Path) -> None:
    put_before(run, "oldest", lambda record: record.update(started="1999-01-01T00:00:00Z"))
    put_before(run, "last")
    put_before(run, "later", lambda record: record.update(started="2002-01-01T00:00:00Z"))
    put_before(run, "another-suite", lambda record: record.update(suite="other", started="2000-06-01T00:00:00Z"))
    (run.parent / "damaged").mkdir()
    (run.parent / "damaged" / "run.json").write_text("{")
    before = told(run)
    assert before is not None and before.run_id == "last" and before.command == "headroom compare ../last ."


def test_a_verdict_that_changed_is_shown_with_both_words(run: Path) -> None:
    place = put_before(run, "before")
    verdicts = json.loads((run / "verdicts.json").read_text())
    changed, *_ = verdicts["claims"]
    now, changed["verdict"] = changed["verdict"], "STRONGER"
    (place / "verdicts.json").write_text(json.dumps(verdicts))
    before = told(run)
    assert before is not None
    ((claim, _, was, is_),) = before.verdicts
    assert (claim, was.word, is_.word) == (changed["id"], "STRONGER", now.partition("(")[0])
