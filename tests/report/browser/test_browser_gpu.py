"""The page of a program on a virtual GPU in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import DESKTOP, PHONE, needs_chromium
from gpu_fixture import write_gpu

from reports.__main__ import main

pytestmark = needs_chromium


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_silent_offline_and_no_wider_than_the_window(
    browser: Any, tmp_path: Path, size: tuple[int, int], theme: str
) -> None:
    directory = write_gpu(tmp_path / "g")
    assert main(["gpu", str(directory)]) == 0
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get((directory / "report.html").as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.get_log("browser") == []
    requests = [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert requests and all('"file:///' in text for text in requests)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    plot = browser.execute_script("return document.querySelector('svg.chart').getBoundingClientRect().width")
    assert width / 3 < plot <= width
