"""A headless Chromium for tests of pages: the browser, the synthetic report in it, what is visible."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER and webdriver),
    reason="no headless browser: install chromium, chromium-driver and python3-selenium",
)

DESKTOP, PHONE = (1440, 900), (390, 844)
DARK = {"name": "prefers-color-scheme", "value": "dark"}


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = CHROMIUM
    with tempfile.TemporaryDirectory() as profile:
        arguments = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
        for argument in (*arguments, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        driver.set_page_load_timeout(60)
        yield driver
        driver.quit()


@pytest.fixture
def page(browser: webdriver.Chrome, synthetic_run: Path) -> Iterator[Any]:
    """Opens the report at an address inside it, at a width, in a theme."""

    def open_page(place: str = "", size: tuple[int, int] = DESKTOP, theme: str = "light") -> webdriver.Chrome:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get("about:blank")
        browser.get((synthetic_run / "report.html").as_uri() + place)
        return browser

    yield open_page
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def background(browser: webdriver.Chrome) -> str:
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def visible(browser: webdriver.Chrome, selector: str) -> list[Any]:
    return [element for element in browser.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]


def name_of(cell: Any) -> str:
    """The name by which the report finds a cell."""
    parts = cell.find_elements(By.CSS_SELECTOR, ".spec, .axes, .name")
    return " ".join(part.get_attribute("textContent") for part in parts)
