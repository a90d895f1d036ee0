"""headroom report: exports of one run, and the page of two."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import Headroom, record_of, samples


@pytest.fixture
def run(headroom: Headroom, counting: str) -> Path:
    assert headroom("run", counting, "--samples-only", "--seed", "3").code == 0
    return headroom.only_run()


def test_exports_are_written_where_asked_and_named(headroom: Headroom, run: Path) -> None:
    outcome = headroom("report", str(run), "--csv", "samples.csv", "--md", "summary.md", "--perfetto", "trace.json")
    assert outcome.code == 0, outcome.errors
    place = headroom.place
    assert len(list(csv.DictReader((place / "samples.csv").open()))) == len(samples(run))
    assert json.loads((place / "trace.json").read_text())["otherData"]["cells_shown"] > 0
    for name in ("samples.csv", "summary.md", "trace.json"):
        assert str((place / name).resolve()) in outcome.output.splitlines()
    assert not (run / "report.html").exists()


def test_two_runs_have_a_page_of_what_changed(headroom: Headroom, run: Path, counting: str) -> None:
    assert headroom("run", counting, "--samples-only", "--seed", "4").code == 0
    other = next(path for path in headroom.runs() if path != run)
    outcome = headroom("report", str(run), str(other), "--html", "changes.html")
    assert outcome.code == 0, outcome.errors
    page = (headroom.place / "changes.html").read_text()
    assert "all 12 configurations that both runs have are the same to the last bit" in page
    assert "the seed" in page


def test_what_is_of_one_run_is_refused_for_two(headroom: Headroom, run: Path) -> None:
    outcome = headroom("report", str(run), str(run), "--csv", "samples.csv")
    assert outcome.code == 2
    assert "--csv is of one run" in outcome.errors


def test_changes_keep_to_the_schema(headroom: Headroom, run: Path) -> None:
    changes = record_of(headroom("compare", str(run), str(run), "--json").output)
    assert changes["kind"] == "changes" and len(changes["cells"]) == 12


@pytest.mark.parametrize(("command", "code"), [(["watch"], 0), (["capture", "--html"], 2)])
def test_a_page_that_cannot_be_made_changes_no_exit_status(headroom: Headroom, command: list[str], code: int) -> None:
    # An interpreter that has every module, and dies when it makes a page.
    python = headroom.place / "python"
    python.write_text("#!/bin/sh\ncase $* in *runpy*) kill -9 $$;; esac\n")
    python.chmod(0o755)
    outcome = headroom(*command, "--out", "recorded", "--", "true", HEADROOM_PYTHON=str(python))
    assert outcome.code == code, outcome.errors  # capture: nothing was captured
    assert "  page    none: " in outcome.errors
    assert "headroom report recorded" in outcome.errors
