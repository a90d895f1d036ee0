"""The section about the nights before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Callable

import pytest
from fixture import write_fixture
from fixture_history import COUNTED, TIMED, write_history

from reports.data.read import InputError, read_run
from reports.render import render
from reports.views.history import MAXIMUM_CHARTS


@pytest.fixture
def run(tmp_path: Path, charts_only_in: Callable[[str], None]) -> Path:
    charts_only_in("history")
    return write_fixture(tmp_path / "run", batches=(4,))


def section(run: Path) -> str:
    found = re.search(r'<section id="history".*?</section>', render(read_run(run)), re.DOTALL)
    assert found
    return found[0]


def captions(text: str) -> list[str]:
    return re.findall(r"<figcaption>(.*?)</figcaption>", text)


def test_a_run_that_was_held_to_nothing_has_no_such_section(run: Path) -> None:
    assert 'id="history"' not in render(read_run(run))


def test_what_is_worse_stands_first_with_its_commits(run: Path) -> None:
    check = write_history(run)
    text = section(run)
    assert check["headline"] in text
    assert "06" * 6 + ".." + "07" * 6 in text
    words = ("step time after warm-up", "reserved, peak after warm-up")
    assert captions(text)[:2] == [f"{TIMED}/1 [bfc]: {words[0]}", f"{COUNTED} [bfc]: {words[1]}"]


def test_a_chart_says_where_it_shifted_and_where_the_environment_changed(run: Path) -> None:
    write_history(run)
    description = re.search(r"<desc[^>]*>(.*?)</desc>", section(run))
    assert description
    assert "Shifted on 2001-01-07." in description[1]
    assert "Another environment since 2001-01-03." in description[1]
    assert "the kernel was &#39;1&#39; and is &#39;2&#39;" in section(run)


def test_the_data_behind_a_chart_is_every_night_of_it(run: Path) -> None:
    write_history(run)
    table = re.search(r'<table class="sortable" id="history-0-data">.*?</table>', section(run), re.DOTALL)
    assert table
    assert table[0].count("<tr>") == 1 + 10


def test_charts_that_there_is_no_room_for_are_counted(run: Path) -> None:
    write_history(run, timed=40)
    text = section(run)
    assert len(captions(text)) == MAXIMUM_CHARTS
    assert f"{MAXIMUM_CHARTS} of 41 series are shown" in text


def test_names_from_files_are_escaped(run: Path) -> None:
    write_history(run)
    assert "synthetic/&lt;gone&gt; [bfc]" in section(run)


def test_nights_that_the_store_no_longer_has_are_left_out(run: Path) -> None:
    write_history(run)
    for night in range(1, 8):
        (run.parent / "history" / "nights" / f"night-{night:02d}.json").unlink()
    assert "3 nights, the last one" in section(run)


def test_a_first_night_has_no_charts_of_one_point_and_says_so(run: Path) -> None:
    check = write_history(run)
    check.update(night_ids=["night-10"], failures=[], marks=[])
    (run / "check.json").write_text(json.dumps(check))
    assert captions(section(run)) == []
    assert "the first night" in section(run)


def test_a_damaged_night_is_named(run: Path) -> None:
    write_history(run)
    night = run.parent / "history" / "nights" / "night-04.json"
    record = json.loads(night.read_text())
    del record["cells"]
    night.write_text(json.dumps(record))
    with pytest.raises(InputError, match="night-04.json"):
        section(run)
