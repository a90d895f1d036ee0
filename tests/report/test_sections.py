"""Sections register themselves: the page knows none of them by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixture import write_fixture

from reports.data.read import read_run
from reports.render import TEMPLATES, render
from reports.views import page as pages
from reports.views.page import Section, sections


def test_every_section_has_an_address_and_a_place_of_its_own() -> None:
    assert len({section.address for section in sections()}) == len(sections())
    assert len({section.place for section in sections()}) == len(sections())


def test_a_section_stands_where_it_says_and_only_where_it_has_something_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read_run(write_fixture(tmp_path / "run", batches=(4,), judged=False))
    some, none = Section("left", "Some", "", 1000, lambda page: page), Section("oom", "None", "", 0, lambda page: [])
    others = [section for section in sections() if section.address not in ("left", "oom")]
    monkeypatch.setattr(pages, "sections", lambda: [none, *others, some])
    monkeypatch.setattr("reports.render.sections", pages.sections)
    (tmp_path / "templates").mkdir()
    for file in TEMPLATES.iterdir():
        (tmp_path / "templates" / file.name).write_text(file.read_text())
    (tmp_path / "templates" / "left.html").write_text("<p>{{ left.data.run.suite }}</p>")
    monkeypatch.setattr("reports.render.TEMPLATES", tmp_path / "templates")
    text = render(data)
    assert text.index('id="provenance"') < text.index('id="left"') < text.index(f"<p>{data.run['suite']}</p>")
    assert 'id="oom"' not in text
