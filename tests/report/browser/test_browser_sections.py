"""Sections of the page in a real browser: what is left, what ran out of memory, the run before, and
charts taken away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from chromium import DESKTOP, PHONE, name_of, needs_chromium, visible
from fixture import write_fixture

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from reports.__main__ import main  # noqa: E402
from reports.views import cells as view_cells  # noqa: E402

pytestmark = needs_chromium


def test_a_chart_is_taken_away_as_a_file_that_needs_no_page(page: Any, tmp_path: Path) -> None:
    browser = page("#claims", theme="dark")
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    figure = browser.find_element(By.CSS_SELECTOR, "article.claim .part[open] figure")
    shown = figure.find_element(By.CSS_SELECTOR, "svg.chart text")
    figure.find_element(By.CSS_SELECTOR, "button.svg").send_keys(Keys.ENTER)
    # Chromium reserves the name with an empty file before it moves the finished one there.
    WebDriverWait(browser, 20).until(lambda _: any(file.stat().st_size for file in tmp_path.glob("*.svg")))
    (file,) = tmp_path.glob("*.svg")
    text = file.read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and float(root.get("width", 0)) > 100
    assert "var(" not in text and "style=" not in text
    words = [element for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(words) == len(figure.find_elements(By.CSS_SELECTOR, "svg.chart text"))
    assert words[0].get("fill") == shown.value_of_css_property("fill")
    assert words[0].get("font-family") == shown.value_of_css_property("font-family")


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_first_finding_is_read_without_scrolling(page: Any, size: tuple[int, int]) -> None:
    browser = page(size=size)
    first = browser.find_element(By.CSS_SELECTOR, "#summary .findings .found")
    assert first.text and first.rect["y"] + first.rect["height"] < size[1]


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_whether_times_can_be_trusted_and_how_to_repeat_it_is_read_without_scrolling(page: Any, size: tuple[int, int]) -> None:
    facts = page(size=size).find_element(By.CSS_SELECTOR, "#summary .brief")
    assert "Times reliable?" in facts.text and "headroom" in facts.text
    assert facts.rect["y"] + facts.rect["height"] < size[1] / 2


def test_a_finding_is_one_row_until_it_is_opened(page: Any) -> None:
    finding = page().find_element(By.CSS_SELECTOR, "#summary .finding")
    row = finding.rect["height"]
    finding.find_element(By.TAG_NAME, "summary").click()
    assert row < 100 < finding.rect["height"]


def test_a_finding_has_an_address_and_leads_to_its_claim(page: Any) -> None:
    browser = page("#finding-S02")
    finding = browser.find_element(By.ID, "finding-S02")
    assert 0 <= finding.rect["y"] - browser.execute_script("return scrollY") < DESKTOP[1]
    finding.find_element(By.CSS_SELECTOR, ".links-on a").click()
    assert browser.find_element(By.ID, "claim-S02").is_displayed()


def test_of_a_claims_evidence_the_part_that_decides_is_open_and_the_rest_on_request(page: Any) -> None:
    browser = page("#claims")

    def opened() -> list[str]:
        found = browser.find_elements(By.CSS_SELECTOR, "article.claim .part[open]")
        return [part.get_attribute("id") for part in found]

    parts = [part.get_attribute("id") for part in browser.find_elements(By.CSS_SELECTOR, "article.claim .part")]
    at_first = opened()
    assert len(at_first) == len(visible(browser, "article.claim")) < len(parts)
    assert len(visible(browser, ".part > summary .badge")) >= len(parts)  # a closed one has its word
    for expected in (parts, []):
        browser.find_element(By.ID, "claim-evidence").send_keys(Keys.ENTER)
        assert opened() == expected
    closed = next(part for part in parts if part not in at_first)
    browser = page("#" + closed)
    assert closed in opened()


def test_of_many_cells_the_first_are_listed_until_all_are_asked_for_or_one_is_linked_to(
    browser: webdriver.Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_cells, "MOST_LISTED", 3)
    directory = write_fixture(tmp_path / "run", batches=(1, 4))
    assert main([str(directory)]) == 0

    def opened(place: str) -> None:
        browser.get("about:blank")
        browser.get((directory / "report.html").as_uri() + place)

    opened("#cells")
    every = browser.find_elements(By.CSS_SELECTOR, "details.cell")
    assert len(visible(browser, "details.cell")) == 3 < len(every)
    assert f"3 of {len(every)} configurations" in browser.find_element(By.ID, "cell-shown").text
    last = every[-1].get_attribute("id")
    browser.find_element(By.ID, "cell-find").send_keys(name_of(every[-1]))
    assert [cell.get_attribute("id") for cell in visible(browser, "details.cell")][-1] == last
    opened("#cells")
    browser.find_element(By.ID, "cell-more").send_keys(Keys.ENTER)
    assert len(visible(browser, "details.cell")) == len(every)
    assert not browser.find_element(By.ID, "cell-more").is_displayed()
    opened("#" + last)
    assert browser.find_element(By.ID, last).is_displayed()


def test_what_ran_out_of_memory_is_explained_and_leads_to_its_cell(page: Any) -> None:
    browser = page("#oom")
    (told,) = visible(browser, "#oom article")
    assert "A request for 18 MiB failed: head.linear (activation)" in told.text.replace("\u202f", " ")
    assert "4 MiB stem.conv" in told.text.replace("\u202f", " ")
    assert told.find_element(By.CSS_SELECTOR, "svg.chart").is_displayed()
    told.find_element(By.LINK_TEXT, "Everything about this configuration").click()
    (cell,) = [item for item in visible(browser, "details.cell") if item.get_attribute("open")]
    assert "fraction=0.5" in name_of(cell)


def test_what_is_left_for_a_second_process_is_drawn_over_the_steps(page: Any) -> None:
    browser = page("#left")
    charts = visible(browser, "#left .figures svg.chart")
    assert charts and "set-up" in charts[0].text
    assert "growth=on" in browser.find_element(By.CSS_SELECTOR, "#left .figures .legend").text


def test_the_run_before_is_told_where_there_is_one(browser: webdriver.Chrome, tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "now", batches=(4,))
    earlier = json.loads((directory / "run.json").read_text())
    earlier.update(run_id="before", started="2000-01-01T00:00:00Z")
    earlier["machine"]["kernel"] = "0.0.1"
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "run.json").write_text(json.dumps(earlier))
    assert main([str(directory)]) == 0
    browser.get((directory / "report.html").as_uri() + "#before")
    (row,) = visible(browser, "#before-data tbody tr")
    assert row.text == "kernel 0.0.1 0.0.0-synthetic"


def test_on_paper_no_table_is_cut_off(browser: webdriver.Chrome, tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(1, 4))
    verdicts = json.loads((directory / "verdicts.json").read_text())
    (like,) = [entry for entry in verdicts["matrix"] if entry["arm"] == "malloc"]
    for name in ("arena", "async", "buddy", "caching", "expandable", "planned", "pool", "stitching", "tlsf"):
        cell = {**like["cell"], "allocator": name, "cell_id": name}
        verdicts["matrix"].append({**like, "arm": name, "cell": cell})
    (directory / "verdicts.json").write_text(json.dumps(verdicts))
    assert main([str(directory)]) == 0
    paper = {"width": 720, "height": 1050, "deviceScaleFactor": 1, "mobile": False}  # A4 less its margins
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    browser.get((directory / "report.html").as_uri() + "#matrix")
    wide = "return [...document.querySelectorAll('.heat')].some((table) => table.scrollWidth > innerWidth)"
    assert browser.execute_script(wide)  # a screen scrolls
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not browser.execute_script(wide)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= paper["width"]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
