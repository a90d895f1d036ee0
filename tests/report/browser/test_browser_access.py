"""The page is legible, touchable and linkable: contrast, sizes of targets, addresses of findings."""

from __future__ import annotations

from typing import Any

import pytest
from chromium import DESKTOP, PHONE, needs_chromium

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402

pytestmark = needs_chromium
OPEN_ALL = "document.querySelectorAll('details').forEach((d) => { d.open = true; });"
# Each text with the ratio of its colour to that of what is behind it, as WCAG 2 defines it.
FAINT_TEXTS = OPEN_ALL + """
const light = (rgb) => {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  dot.clearRect(0, 0, 1, 1);
  dot.fillStyle = colour;
  dot.fillRect(0, 0, 1, 1);
  return [...dot.getImageData(0, 0, 1, 1).data];
};
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const colour = rgba(getComputedStyle(element).backgroundColor);
    if (colour[3] > 200) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
const faint = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text; (text = texts.nextNode()); ) {
  const element = text.parentElement;
  if (!text.textContent.trim() || element.closest("script, title, desc") || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const [a, b] = [rgba(element.closest("svg") ? style.fill : style.color).slice(0, 3), behind(element)].map(light);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 120)}`);
}
return faint;"""
# A link within a sentence is as high as its line (WCAG 2.5.8 excepts it).
SMALL_TARGETS = OPEN_ALL + """
const inSentence = (e) => e.tagName === "A" && e.parentElement.matches("p, li, dd, blockquote footer") && e.parentElement.textContent.trim() !== e.textContent.trim() && getComputedStyle(e).display === "inline";
return [...document.querySelectorAll("a, button, summary, select, input")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.height < 23.9 || box.width < 23.9) && !inSentence(e);
}).map((e) => e.outerHTML.slice(0, 120));"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(page: Any, size: tuple[int, int], theme: str) -> None:
    assert page(size=size, theme=theme).execute_script(FAINT_TEXTS) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_every_target_is_large_enough_to_touch(page: Any, size: tuple[int, int]) -> None:
    assert page(size=size).execute_script(SMALL_TARGETS) == []


def test_each_finding_has_an_address_and_a_text_to_quote(page: Any) -> None:
    browser = page()
    findings = browser.find_elements(By.CSS_SELECTOR, ".findings > li")
    assert findings
    for finding in findings:
        address = finding.get_attribute("id")
        assert address and finding.find_elements(By.CSS_SELECTOR, f"a[href='#{address}']")
        quote = finding.find_element(By.CSS_SELECTOR, ".quote").get_attribute("textContent")
        assert finding.find_element(By.CSS_SELECTOR, ".found").get_attribute("textContent") in quote
    last = findings[-1].get_attribute("id")
    top = page("#" + last).execute_script(f"return document.getElementById('{last}').getBoundingClientRect().top")
    assert 0 <= top < DESKTOP[1]


def test_provenance_shows_paths_and_hashes_whole(page: Any) -> None:
    browser = page("#provenance")
    cut = """return [...document.querySelectorAll('#provenance .scroll')]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.getAttribute('aria-label'));"""
    assert browser.execute_script(OPEN_ALL + cut) == []


def test_a_source_with_an_address_is_a_link(page: Any) -> None:
    (link, *_) = page("#claims").find_elements(By.CSS_SELECTOR, "blockquote footer a")
    assert link.get_attribute("href") == "https://example.org/memory"
