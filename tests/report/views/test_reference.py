"""Results of other machines beside those of this run. The stored run here is SYNTHETIC."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Callable

import pytest
from fixture import write_fixture

from reports.data.read import InputError, read_run
from reports.render import render
from reports.views.reference import REFERENCES, Reference, build_references

GPU = "SYNTHETIC GPU of a test"


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with verdicts. Read only."""
    return write_fixture(tmp_path_factory.mktemp("reference") / "run", batches=(4,))


def stored(run: Path, place: Path, **changes: Any) -> dict[str, Any]:
    """A made-up run as it would be kept: the cells of `run`, as another machine would have them."""
    folder = place / "made-up"
    folder.mkdir(parents=True)
    record = json.loads((run / "run.json").read_text())
    record["machine"] = {**record["machine"], "gpu": GPU, "gpu_driver": "0.0", **changes}
    (folder / "run.json").write_text(json.dumps(record))
    verdicts: dict[str, Any] = json.loads((run / "verdicts.json").read_text())
    verdicts = copy.deepcopy(verdicts)
    for entry in verdicts["matrix"]:
        entry["cell"] = {**entry["cell"], "device": "cuda", "device_class": "cuda", "rules": "cudnn"}
        entry["status"] = "ok"  # a larger card
        entry["values"] = {"steady_step_time_ns": 5e6, "reserved_bytes.overall_peak": 2**30}
    (folder / "verdicts.json").write_text(json.dumps(verdicts))
    return verdicts


def references(run: Path, place: Path) -> list[Reference]:
    verdicts = read_run(run).verdicts
    assert verdicts
    return build_references(verdicts["matrix"], verdicts["claims"], place)


def test_nothing_is_shown_where_nothing_is_kept(judged_run: Path, tmp_path: Path) -> None:
    assert references(judged_run, tmp_path) == []


def test_the_same_cell_stands_beside_itself_under_the_name_of_its_machine(
    judged_run: Path, tmp_path: Path
) -> None:
    stored(judged_run, tmp_path)
    (reference,) = references(judged_run, tmp_path)
    assert reference.machine == GPU
    assert "driver 0.0" in reference.provenance and "made-up" in reference.provenance
    assert reference.cells
    for row in reference.cells.rows:
        assert row[2].sort == 5e6 and row[3].sort == 2**30
    here = read_run(judged_run).verdicts
    assert here and {row[4].text for row in reference.cells.rows} == {e["cell"]["device"] for e in here["matrix"]}


def test_verdicts_of_the_same_claims_stand_side_by_side(judged_run: Path, tmp_path: Path) -> None:
    verdicts = stored(judged_run, tmp_path)
    (reference,) = references(judged_run, tmp_path)
    assert reference.claims
    assert [row[0].text for row in reference.claims.rows] == [claim["id"] for claim in verdicts["claims"]]


def test_the_page_says_that_they_were_measured_elsewhere(
    judged_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, charts_only_in: Callable[[str], None]
) -> None:
    charts_only_in("reference")
    stored(judged_run, tmp_path)
    found = references(judged_run, tmp_path)
    monkeypatch.setattr("reports.views.reference.build_references", lambda entries, claims: found)
    page = render(read_run(judged_run))
    assert 'href="#reference"' in page and GPU in page and "measured elsewhere" in page
    assert "No verdict of this run rests on them" in page


def test_a_damaged_reference_is_named(judged_run: Path, tmp_path: Path) -> None:
    stored(judged_run, tmp_path)
    (tmp_path / "made-up" / "verdicts.json").write_text("{")
    with pytest.raises(InputError, match="made-up/verdicts.json"):
        references(judged_run, tmp_path)


def test_nothing_made_up_is_kept_with_the_project() -> None:
    for run in REFERENCES.glob("*/run.json"):
        assert "SYNTHETIC" not in run.read_text()
