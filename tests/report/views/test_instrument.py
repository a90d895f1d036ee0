"""The section about the instrument itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Callable

import pytest
from fixture import write_fixture

from reports.data.read import read_run
from reports.render import render
from reports.views import cells


@pytest.fixture
def run(tmp_path: Path, charts_only_in: Callable[[str], None]) -> Path:
    charts_only_in("instrument")
    return write_fixture(tmp_path / "run", batches=(4,))


def section(run: Path) -> str:
    page = render(read_run(run))
    found = re.search(r'<section id="instrument".*?</section>', page, re.DOTALL)
    assert found
    return found[0]


def change(run: Path, name: str, changes) -> None:
    file = run / name
    record = json.loads(file.read_text())
    changes(record)
    file.write_text(json.dumps(record))


def rows(section_text: str, table: str) -> list[list[str]]:
    body = re.search(rf'<table id="{table}".*?</table>', section_text, re.DOTALL)
    assert body
    found = re.findall(r"<tr title.*?</tr>", body[0], re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)] for row in found]


def test_every_effect_put_in_on_purpose_has_its_outcome_and_figure(run: Path) -> None:
    controls = rows(section(run), "controls")
    assert [row[0] for row in controls] == ["seen", "seen", "seen"]
    slowdown, leak, fragmentation = controls
    assert slowdown[2] == "+6.0\u202f%"
    assert "…" in slowdown[3]
    assert leak[2:4] == ["+64\u202fKiB", "exact"]
    assert fragmentation[2:4] == ["+0.268", "exact"]


def test_an_effect_that_was_missed_is_shown_as_missed(run: Path) -> None:
    def miss(verdicts: dict) -> None:
        verdicts["sensitivity"] = {"status": "insensitive", "why": "SYNTHETIC: one was not seen."}
        verdicts["controls"][0]["outcome"] = "missed"

    change(run, "verdicts.json", miss)
    text = section(run)
    assert rows(text, "controls")[0][0] == "missed"
    assert "insensitive" in text
    assert "SYNTHETIC: one was not seen." in text


def test_identical_arms_that_look_different_are_marked(run: Path) -> None:
    assert [row[0] for row in rows(section(run), "identical")] == ["no difference", "alarm"]


def test_files_of_before_there_were_controls_are_read(run: Path) -> None:
    def without(verdicts: dict) -> None:
        del verdicts["sensitivity"], verdicts["controls"], verdicts["calibration"]["comparisons"]

    change(run, "verdicts.json", without)
    text = section(run)
    assert "<table" not in text
    assert "12 of at least 40" in text


def test_samples_of_controls_are_no_cells(
    run: Path, monkeypatch: pytest.MonkeyPatch, charts_only_in: Callable[[str], None]
) -> None:
    charts_only_in("cells")
    monkeypatch.setattr(cells, "_CHARTED", (0, 0))
    samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
    about_instrument = samples[-1]["experiment"]
    before = render(read_run(run)).count('class="cell"')

    def mark(record: dict) -> None:
        record["experiments"] = [
            {"id": about_instrument, "origin": "synthetic", "point": "", "kind": "control", "blocks": 1,
             "timeout_s": 1, "arms": []}
        ]

    change(run, "run.json", mark)
    change(run, "verdicts.json", lambda verdicts: verdicts.update(
        matrix=[entry for entry in verdicts["matrix"] if entry["experiment"] != about_instrument]))
    after = render(read_run(run)).count('class="cell"')
    assert 0 < after < before
