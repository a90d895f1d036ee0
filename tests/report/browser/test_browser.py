"""The page in a real browser: silent, offline, usable by keyboard, at two widths, in two themes,
with and without scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chromium import DARK, DESKTOP, PHONE, background, name_of, needs_chromium, visible
from fixture import write_fixture

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

from reports.__main__ import main  # noqa: E402

pytestmark = needs_chromium
SECTIONS = ["summary", "claims", "matrix", "compare", "tradeoffs", "left", "oom", "cells", "reference", "instrument", "provenance"]


def test_it_opens_without_a_message_and_asks_the_network_for_nothing(page: Any) -> None:
    page().get_log("browser")
    page().get_log("performance")
    browser = page()
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.get_log("browser") == []
    requests = [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert requests and all("file:///" in text or "about:blank" in text for text in requests)
    assert sum('"file:///' in text and "report.html" in text for text in requests) == len(requests)


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_sticks_out_sideways(page: Any, size: tuple[int, int], theme: str) -> None:
    browser = page(size=size, theme=theme)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page_width, window_width = browser.execute_script(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    assert page_width <= window_width <= size[0]


def test_on_a_phone_tables_are_read_row_by_row_without_scrolling_sideways(page: Any) -> None:
    browser = page("#matrix", size=PHONE)
    wide = "return [...document.querySelectorAll('#matrix .heat')].filter((table) => table.scrollWidth > innerWidth).length"
    assert visible(browser, "#matrix .heat .m") and browser.execute_script(wide) == 0
    assert "bfc" in browser.execute_script("return document.querySelector('#matrix .heat td').dataset.label")


def test_every_section_is_reached_by_keyboard(page: Any) -> None:
    browser = page()
    reached = []
    for _ in range(len(SECTIONS) + 4):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        link = browser.switch_to.active_element
        if link.get_attribute("class") in ("brand", "skip") or not (link.get_attribute("href") or "").count("#"):
            continue
        name = link.get_attribute("href").split("#")[1]
        if name in SECTIONS and name not in reached:
            link.send_keys(Keys.ENTER)
            reached.append(name)
            top = browser.execute_script(f"return document.getElementById('{name}').getBoundingClientRect().top")
            assert top < DESKTOP[1]
            link = browser.find_element(By.CSS_SELECTOR, f".nav a[href='#{name}']")
            browser.execute_script("arguments[0].focus()", link)
    assert reached == SECTIONS


def test_only_the_first_screen_is_open_and_paper_has_everything(page: Any) -> None:
    browser = page()
    assert visible(browser, "#summary .findings li") and not visible(browser, ".fold > :not(summary)")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert len(visible(browser, ".fold[open]")) == len(SECTIONS) - 1


def test_a_cell_is_opened_by_keyboard(page: Any) -> None:
    browser = page("#cells")
    cell = browser.find_element(By.CSS_SELECTOR, "details.cell")
    summary = cell.find_element(By.TAG_NAME, "summary")
    browser.execute_script("arguments[0].focus()", summary)
    summary.send_keys(Keys.ENTER)
    assert cell.get_attribute("open") is not None
    assert cell.find_element(By.CSS_SELECTOR, "svg.chart").is_displayed()


def test_a_link_into_a_cell_opens_it(page: Any) -> None:
    browser = page()
    anchor = browser.find_elements(By.CSS_SELECTOR, "details.cell")[7].get_attribute("id")
    browser = page("#" + anchor)
    cell = browser.find_element(By.ID, anchor)
    assert cell.get_attribute("open") is not None
    assert 0 <= cell.rect["y"] - browser.execute_script("return scrollY") < DESKTOP[1]


def test_cells_are_found_by_words_and_the_address_remembers(page: Any) -> None:
    browser = page("#cells")
    whole = len(visible(browser, "details.cell"))
    browser.find_element(By.ID, "cell-find").send_keys("host malloc")
    found = visible(browser, "details.cell")
    assert 0 < len(found) < whole
    for cell in found:
        assert "malloc" in name_of(cell) and "host" in name_of(cell)
    address = browser.current_url
    assert len(visible(page(address[address.index("#") :]), "details.cell")) == len(found)


def test_cells_are_ordered_by_peak_reserved(page: Any) -> None:
    browser = page("#cells")
    Select(browser.find_element(By.ID, "cell-order")).select_by_value("reserved")
    values = [cell.get_attribute("data-reserved") for cell in visible(browser, "details.cell")]
    known = [float(value) for value in values if value]
    assert len(known) > 5 and known == sorted(known) and not any(values[len(known) :])


def test_a_link_through_a_filter_shows_its_goal(page: Any) -> None:
    browser = page("#cells")
    cells = browser.find_elements(By.CSS_SELECTOR, "details.cell")
    hidden = next(cell for cell in cells if "malloc" not in name_of(cell))
    browser.find_element(By.ID, "cell-find").send_keys("malloc")
    assert not hidden.is_displayed()
    browser.execute_script("location.hash = arguments[0]", hidden.get_attribute("id"))
    browser.implicitly_wait(2)
    assert hidden.is_displayed()


def test_claims_are_filtered_by_verdict(page: Any) -> None:
    browser = page("#claims?verdict=CONDITIONAL")
    assert [claim.get_attribute("id") for claim in visible(browser, "article.claim")] == ["claim-S02"]
    Select(browser.find_element(By.ID, "claim-verdict")).select_by_value("")
    assert len(visible(browser, "article.claim")) == 2


def test_the_matrix_shows_the_chosen_figure_and_device(page: Any) -> None:
    browser = page("#matrix")
    Select(browser.find_element(By.ID, "matrix-metric")).select_by_value("steady_step_time_ns")
    shown = visible(browser, "#matrix .m")
    assert shown and all(item.get_attribute("data-m") == "steady_step_time_ns" for item in shown)
    Select(browser.find_element(By.ID, "matrix-device")).select_by_value("host(capacity=4GiB)")
    assert len(visible(browser, "#matrix .device-table")) == 1
    assert "metric=steady_step_time_ns" in browser.current_url


def test_the_matrix_is_narrowed_by_an_axis_it_has_never_heard_of(browser: webdriver.Chrome, tmp_path: Path) -> None:
    directory = write_fixture(tmp_path / "run", batches=(1, 4))
    verdicts = json.loads((directory / "verdicts.json").read_text())
    for place, entry in enumerate(verdicts["matrix"]):
        entry["cell"]["offload"] = "activations(to=host)" if place % 4 < 2 else "none"
    (directory / "verdicts.json").write_text(json.dumps(verdicts))
    assert main([str(directory)]) == 0

    def opened(place: str) -> list[Any]:
        browser.get("about:blank")
        browser.get((directory / "report.html").as_uri() + place)
        return visible(browser, "#matrix .heat tbody tr")

    everything = len(opened("#matrix"))
    Select(browser.find_element(By.CSS_SELECTOR, "[data-axis=offload]")).select_by_value("activations(to=host)")
    shown = visible(browser, "#matrix .heat tbody tr")
    assert 0 < len(shown) < everything
    assert all("activations(to=host)" in row.get_attribute("data-axes") for row in shown)
    address = browser.current_url
    assert len(opened(address[address.index("#") :])) == len(shown)


def test_two_cells_are_set_side_by_side_and_the_address_remembers(page: Any) -> None:
    def changes(browser: webdriver.Chrome) -> list[str]:
        rows = browser.find_elements(By.CSS_SELECTOR, ".forest-table tbody tr")
        return [row.find_elements(By.TAG_NAME, "td")[2].text for row in rows]

    browser = page("#compare")
    Select(browser.find_element(By.ID, "compare-b")).select_by_visible_text("malloc · S03/host")
    assert "step time after warm-up" in browser.find_element(By.CSS_SELECTOR, ".forest-table").text
    assert "+31 %" in [text.replace("\u202f", " ") for text in changes(browser)]
    assert len(visible(browser, "#compare-out svg.chart circle")) == 9  # pairs; the disturbed one is not drawn
    assert "1 more was disturbed and is not drawn" in browser.find_element(By.ID, "compare-out").text
    address = browser.current_url
    found = changes(browser)
    assert changes(page(address[address.index("#") :])) == found
    browser.find_element(By.ID, "compare-swap").click()
    assert "\u221223.7 %" in [text.replace("\u202f", " ") for text in changes(browser)]


def test_what_the_run_did_not_pair_has_values_and_no_verdict(page: Any) -> None:
    browser = page("#compare")
    for side, text in (("a", "growth · S03/host"), ("b", "malloc · S03/host")):
        Select(browser.find_element(By.ID, "compare-" + side)).select_by_visible_text(text)
    assert not visible(browser, ".forest-table .badge")
    assert "no comparison" in browser.find_element(By.CSS_SELECTOR, ".forest-table").text


def test_a_cell_is_pinned_from_its_own_place(page: Any) -> None:
    browser = page("#cells")
    browser.find_element(By.ID, "cell-find").send_keys("host malloc")
    visible(browser, "details.cell summary")[0].click()
    browser.find_element(By.CSS_SELECTOR, "details.cell[open]").find_element(By.LINK_TEXT, "as B").click()
    chosen = Select(browser.find_element(By.ID, "compare-b")).first_selected_option
    assert chosen.text == "malloc · S03/host"
    assert browser.find_element(By.ID, "compare").rect["y"] - browser.execute_script("return scrollY") < DESKTOP[1]


def test_a_table_is_sorted_by_its_numbers_both_ways(page: Any) -> None:
    browser = page("#matrix")
    browser.execute_script("document.querySelector('#matrix .data').open = true")
    header = browser.find_elements(By.CSS_SELECTOR, "#matrix-data th")[7]
    cells = "return [...document.querySelectorAll('#matrix-data tbody tr')].map((row) => row.cells[7].title.split(' ')[0])"
    for direction, reverse in (("ascending", False), ("descending", True)):
        header.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        assert header.get_attribute("aria-sort") == direction
        values = [float(value.replace(",", "")) for value in browser.execute_script(cells) if value]
        assert len(set(values)) > 2 and values == sorted(values, reverse=reverse)


def test_the_theme_follows_the_system_until_chosen(page: Any) -> None:
    light, dark = background(page(theme="light")), background(page(theme="dark"))
    assert light != dark
    browser = page(theme="dark")
    button = browser.find_element(By.ID, "theme")
    button.send_keys(Keys.ENTER)
    assert background(browser) == light
    button.send_keys(Keys.ENTER)
    assert background(browser) == dark
    button.send_keys(Keys.ENTER)
    assert button.text == "Theme: auto"


def test_paper_is_light_whatever_the_screen_is(page: Any) -> None:
    browser = page(theme="dark")
    on_screen = browser.find_element(By.TAG_NAME, "h1").value_of_css_property("color")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [DARK]})
    on_paper = browser.find_element(By.TAG_NAME, "h1").value_of_css_property("color")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert on_paper != on_screen
    assert on_paper == page(theme="light").find_element(By.TAG_NAME, "h1").value_of_css_property("color")


def test_charts_follow_the_theme(page: Any) -> None:
    colours = set()
    for theme in ("light", "dark"):
        browser = page("#claims", theme=theme)
        text = browser.find_element(By.CSS_SELECTOR, "article.claim svg.chart text")
        colours.add(text.value_of_css_property("fill"))
    assert len(colours) == 2


def test_the_pointer_reads_a_chart(page: Any) -> None:
    browser = page("#claims")
    chart = browser.find_element(By.CSS_SELECTOR, "article.claim .part[open] svg.chart")
    webdriver.ActionChains(browser).move_to_element(chart).perform()
    tip = browser.find_element(By.ID, "tip")
    assert tip.is_displayed() and "batch" in tip.text and "MiB" in tip.text


def test_without_scripts_the_content_is_there_and_the_controls_are_not(page: Any, browser: webdriver.Chrome) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    opened = page()
    for section in SECTIONS:
        assert opened.find_element(By.ID, section).is_displayed()
    assert visible(opened, "#summary .findings .found")
    for fold in opened.find_elements(By.CSS_SELECTOR, ".fold > summary"):
        fold.send_keys(Keys.ENTER)
    assert visible(opened, "article.claim svg.chart")
    assert visible(opened, "#matrix .m")
    assert not visible(opened, ".js-only")
    opened.find_element(By.CSS_SELECTOR, "details.cell summary").send_keys(Keys.ENTER)
    assert visible(opened, "details.cell svg.chart")
