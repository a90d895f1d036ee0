"""The page of two runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fixture import write_files

from reports.__main__ import main
from reports.data.read import InputError, RunData, read_changes, read_run
from reports.render import render_changes

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def metric(before: float, after: float, outcome: str) -> dict[str, Any]:
    return {"metric": "reserved_bytes.overall_peak", "unit": "B", "before": before, "after": after, "outcome": outcome}


def cell(outcome: str, sentence: str, *changes: dict[str, Any], arm: str = "malloc") -> dict[str, Any]:
    return {"experiment": "S03/host", "arm": arm, "outcome": outcome, "sentence": sentence, "changes": list(changes)}


def write_changes(file: Path, *cells: dict[str, Any], **more: Any) -> Path:
    record = {
        "schema_version": "1.0", "kind": "changes", "not_compared": "Times are not compared.", "missing": [],
        "new": [], "environment": [], "cells": list(cells),
    }  # fmt: skip
    file.write_text(json.dumps(record | more))
    return file


@pytest.fixture
def page(synthetic_run: Path, tmp_path: Path) -> Any:
    def render(*cells: dict[str, Any], after: RunData | None = None, **more: Any) -> str:
        changes = read_changes(write_changes(tmp_path / "changes.json", *cells, **more), synthetic_run)
        text = render_changes(after or read_run(synthetic_run), changes)
        return text.replace("\u202f", " ").replace("\u2212", "-")

    return render


def test_nothing_changed_is_said_in_one_sentence(page: Any) -> None:
    assert "all 2 configurations that both runs have are the same to the last bit" in page(cell("same", "x"), cell("same", "y"))


def test_what_got_worse_stands_first_with_its_bytes(page: Any) -> None:
    text = page(
        cell("better", "less", metric(4096, 2048, "better"), arm="growth"),
        cell("worse", "more", metric(1024**3, 2 * 1024**3, "worse")),
    )
    table = text[text.index('id="changes-data"') :]
    assert table.index("malloc") < table.index("growth")
    assert 'title="1,073,741,824 bytes"' in table and "+1 GiB" in table and "+100 %" in table and "-50 %" in table
    assert "<h1>Worse in 1 of 2 configurations.</h1>" in text
    assert "The largest change: reserved memory at its peak went from 1 GiB to 2 GiB (+100 %) in S03/host [malloc]." in text


@pytest.mark.parametrize(
    ("cells", "headline"),
    [
        ([cell("better", "less", metric(2, 1, "better")), cell("same", "x")], "Better in 1 of 2 configurations."),
        ([cell("changed", "x", metric(1000, 1001, "changed"))], "Nothing got worse by more than 1 % of what can be compared."),
        ([cell("not comparable", "x"), cell("same", "x")], "No figure changed, but 1 of 2 configurations cannot be compared."),
    ],
)
def test_the_headline_says_whether_it_got_worse(page: Any, cells: list[dict[str, Any]], headline: str) -> None:
    assert f"<h1>{headline}</h1>" in page(*cells)


def test_a_figure_that_was_nothing_has_no_share(page: Any) -> None:
    assert "from 0" in page(cell("worse", "more", metric(0, 4096, "worse")))


def test_a_verdict_that_changed_is_shown_with_both_words(page: Any, tmp_path: Path, synthetic_run: Path) -> None:
    data = read_run(synthetic_run)
    assert "No claim in both runs changed its verdict" in page(cell("same", "x"))
    verdicts = json.loads(json.dumps(data.verdicts))
    verdicts["claims"][0]["verdict"] = "REFUTED"
    write_files(tmp_path / "after", data.run, data.samples, verdicts)
    text = page(cell("same", "x"), after=read_run(tmp_path / "after"))
    glance = text[text.index('class="glance"') : text.index('id="metrics"')]
    assert glance.index("CONDITIONAL") < glance.index("REFUTED")


def test_the_environment_and_cells_of_one_run_alone_are_listed(page: Any) -> None:
    difference = {"what": "library onednn", "before": "1", "after": "2"}
    text = page(cell("same", "x"), environment=[difference], missing=["gone [a]"], new=["fresh [b]"])
    assert "library onednn" in text and "gone [a]" in text and "fresh [b]" in text


def test_hostile_names_do_nothing(page: Any) -> None:
    text = page({**cell("worse", HOSTILE, metric(1, 2, "worse"), arm=HOSTILE), "experiment": HOSTILE}, missing=[HOSTILE])
    assert len(re.findall("<script>", text)) == 1 and "<img" not in text


def test_changes_that_are_none_are_refused_with_their_place(tmp_path: Path, synthetic_run: Path) -> None:
    file = write_changes(tmp_path / "changes.json", {"experiment": 3})
    with pytest.raises(InputError, match="changes.json: does not fit the schema"):
        read_changes(file, synthetic_run)


def test_what_is_of_one_run_is_refused(
    synthetic_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_changes(tmp_path / "changes.json", cell("same", "x"))
    arguments = [str(synthetic_run), "--before", str(synthetic_run), "--changes", str(file)]
    assert main([*arguments, "--csv", str(tmp_path / "s.csv")]) == 2
    assert "--csv is of one run" in capsys.readouterr().err
    assert main([*arguments, "--share", str(tmp_path / "public")]) == 2
    assert "--share is of one run" in capsys.readouterr().err
    assert main([*arguments, "--html", str(tmp_path / "c.html")]) == 0
    assert (tmp_path / "c.html").exists()
