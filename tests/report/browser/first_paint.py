"""How large the page of a large run is, and how soon a browser shows it. Prints figures, judges none.

By hand: PYTHONPATH=.:tests/report /usr/bin/python3 tests/report/browser/first_paint.py [CELLS] [DIRECTORY]
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from large_run import write_large_run
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from reports.__main__ import main

OPENINGS = 5


def openings(page: Path) -> list[dict[str, float]]:
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    found = []
    try:
        driver.set_window_size(1440, 900)
        for _ in range(OPENINGS):
            driver.get("about:blank")
            driver.get(page.as_uri())
            time.sleep(1)
            found.append(json.loads(driver.execute_script(
                "const paint = performance.getEntriesByName('first-contentful-paint')[0];"
                "const [page] = performance.getEntriesByType('navigation');"
                "return JSON.stringify({ 'first paint': paint?.startTime ?? NaN, 'content ready': page.domContentLoadedEventEnd,"
                " elements: document.getElementsByTagName('*').length })"
            )))  # fmt: skip
    finally:
        driver.quit()
    return found


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as scratch:
        run = write_large_run(Path(sys.argv[2] if len(sys.argv) > 2 else scratch), count)
        began = time.monotonic()
        if main([str(run)]) != 0:
            sys.exit(1)
        print(f"{count} cells: written in {time.monotonic() - began:.1f} s")
        print(f"page: {(run / 'report.html').stat().st_size / 2**20:.2f} MiB")
        figures = openings(run / "report.html")
        for name in figures[0]:
            values = [figure[name] for figure in figures]
            unit = "" if name == "elements" else " ms"
            print(f"{name}: median {statistics.median(values):.0f}{unit}, {min(values):.0f} to {max(values):.0f}")
