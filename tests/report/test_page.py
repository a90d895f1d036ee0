"""The page as text: self-contained, escaped, the same for the same input."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fixture import BATCHES, run_of, write_files, write_fixture
from fixture_recording import write_trace

from harness.trace.file import Trace, read_trace
from reports.data.read import read_run
from reports.data.trace import MAXIMUM_EVENTS
from reports.render import render

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\'${}{{7*7}}'


class Page(HTMLParser):
    """Elements, attributes and text of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="session")
def page_text(synthetic_run: Path) -> str:
    return (synthetic_run / "report.html").read_text()


@pytest.fixture(scope="session")
def page(page_text: str) -> Page:
    return Page(page_text)


def test_the_same_input_gives_the_same_bytes(synthetic_run: Path, page_text: str) -> None:
    assert render(read_run(synthetic_run)) == page_text


def test_the_same_input_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    here, there = (write_fixture(tmp_path / name, batches=(4,)) for name in ("here", "there"))
    assert render(read_run(here)) == render(read_run(there))


def test_the_cost_of_measuring_is_told_in_the_summary_and_in_full(page: Page) -> None:
    text = " ".join(" ".join(page.text).replace("\u202f", " ").split())
    assert text.count("4.0 min of 9.0 min were spent outside training steps; recording costs 9.40 ns per event and 0.0052 % of a step.") == 2
    assert "machine probes around samples 30 s, 5.6 %" in text
    assert "everything else 24 s, 4.4 %" in text
    assert "at most 0.031 % (aim: at most 0.5 %)" in text


def test_a_run_without_costs_still_has_its_page(tmp_path: Path) -> None:
    run = run_of(0)
    del run["cost"]
    write_files(tmp_path, run, [], None)
    assert "Cost of measuring" not in render(read_run(tmp_path))


def test_shards_and_added_blocks_are_told(tmp_path: Path) -> None:
    shard = {"run_id": "SYNTHETIC-1of2", "shard": {"number": 1, "count": 2}, "status": "finished", "started": "x",
             "finished": None, "hostname_hash": "h", "environment_id": "e", "best_probe_gflops": None, "samples": 3}
    addition = {"experiment": "open/times", "reason": "inconclusive", "added": "today", "first_block": 2, "blocks": 4}
    write_files(tmp_path, run_of(0) | {"shards": [shard], "additions": [addition]}, [], None)
    page = render(read_run(tmp_path))
    assert "1 of 2" in page and "SYNTHETIC-1of2" in page
    assert "open/times: 4 blocks, because it was inconclusive (today)" in page


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    loading = {"link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}
    assert not [tag for tag, _ in page.elements if tag in loading]
    for tag, attributes in page.elements:
        assert "src" not in attributes
        for key in ("href", "xlink:href"):
            # A link of the reader's own click is no load.
            assert attributes.get(key, "#").startswith(("#", "https://") if tag == "a" else "#")


def test_the_policy_allows_exactly_the_style_and_script_of_the_page(page_text: str, page: Page) -> None:
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind, pattern in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        bodies = re.findall(pattern, page_text, re.DOTALL)
        assert len(bodies) == 1
        digest = base64.b64encode(hashlib.sha256(bodies[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_no_element_carries_style_or_handlers(page: Page) -> None:
    for tag, attributes in page.elements:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag


def test_ids_are_unique_and_every_inner_link_leads_somewhere(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for key, value in attributes.items():
            if key == "href" and value and not value.startswith("https://"):
                assert value[1:].split("?")[0] in ids, value
            for reference in re.findall(r"url\(#([^)]*)\)", value or ""):
                assert reference in ids


def test_charts_have_a_name_a_description_and_their_data(page: Page, page_text: str) -> None:
    charts = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]
    assert len(charts) > 20
    ids = {attributes.get("id"): tag for tag, attributes in page.elements}
    for chart in charts:
        title, description = (chart["aria-labelledby"] or "").split()
        assert (ids[title], ids[description]) == ("title", "desc")
        assert ids[title.removesuffix("-t") + "-data"] == "table"


def test_colours_in_charts_are_variables(page_text: str) -> None:
    charts = "".join(re.findall(r'<svg[^>]*class="chart".*?</svg>', page_text, re.DOTALL))
    assert "var(--" in charts
    assert not re.findall(r"#[0-9a-fA-F]{6}\b", charts)


def test_it_stays_small(page_text: str) -> None:
    assert len(page_text.encode()) < 4 * 2**20


def hostile(value: Any, key: str = "") -> Any:
    """Every free text of a record, made hostile; words the schema fixes stay."""
    fixed = {"schema_version", "kind", "status", "device_class", "relation", "scale", "trace_file", "judge"}
    if isinstance(value, dict):
        return {name: hostile(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, key) for item in value]
    if isinstance(value, str) and key not in fixed:
        return value + HOSTILE
    return value


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(1, 4, 16, 32))
    data = read_run(directory)
    write_files(directory, hostile(data.run), [hostile(sample) for sample in data.samples], hostile(data.verdicts))
    for file in (directory / "traces").iterdir():
        trace = read_trace(file, MAXIMUM_EVENTS)
        header = {**trace.header, "phases": [name + HOSTILE for name in trace.header["phases"]]}
        write_trace(Trace(header, [name + HOSTILE for name in trace.op_names], trace.columns), file)
    text = render(read_run(directory))
    page = Page(text)
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert len(re.findall(r"<script>", text)) == 1
    assert "alert(1)" in "".join(page.text)
    assert "{{7*7}}" in text and "49" not in "".join(re.findall(r"\{\{7.*?\}\}", text))


def test_contradicting_bytes_are_said_on_the_first_screen_and_in_the_cell(tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(4,), judged=False)
    samples = read_run(directory).samples
    samples[0]["memory"]["allocated_bytes"]["steady_peak"] = 2**50
    write_files(directory, run_of(len(samples)), samples, None)
    text = render(read_run(directory))
    summary, cells = text.split('id="cells"')
    assert "contradict each other in 1 configuration" in summary
    assert "allocated" in cells and "exceeds reserved" in cells


def test_a_missing_trace_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(4,), judged=False)
    for file in (directory / "traces").iterdir():
        file.unlink()
    text = render(read_run(directory))
    assert "There is no memory timeline" in text and "is missing" in text
    assert "What is live at the peak" in text


def test_a_run_without_samples_still_has_a_page(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    write_files(directory, {**run_of(12), "status": "interrupted"}, [], None)
    text = render(read_run(directory))
    assert "0 of 12 planned samples" in text
    assert 'id="provenance"' in text and 'id="matrix"' not in text


def test_cells_that_gave_no_figure_stay_visible_with_their_reason(page: Page) -> None:
    text = "".join(page.text)
    assert "this machine has no CUDA GPU" in text
    assert "did not fit into 64 MiB" in text


def table_of(page_text: str, identity: str) -> str:
    found = re.search(rf'<table class="sortable" id="{identity}">(.*?)</table>', page_text, re.DOTALL)
    assert found is not None
    return found[1]


def test_every_point_of_a_sweep_is_in_its_data(page_text: str) -> None:
    table = table_of(page_text, "claim-S02-p2-s1-data")
    for batch in BATCHES:
        assert table.count(f'data-sort="{batch}.0">{batch}</td>') == 6


def test_evidence_without_a_figure_is_listed_with_its_reason(page_text: str) -> None:
    table = table_of(page_text, "claim-S03-p1-rest")
    assert table.count("this machine has no CUDA GPU.") == 2
