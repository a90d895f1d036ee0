"""A folder to publish: the report, and for each finding a page of its own with a preview image, since the
programs that show a picture of what a message links to read a page's head and no address inside it."""

from __future__ import annotations

import re
from typing import Iterator

from reports.charts.preview import preview
from reports.data.read import RunData
from reports.render import render, render_page, stylesheet
from reports.views.first_screen.summary import build_summary
from reports.views.page import page_of


def shared_files(data: RunData, address: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each. `address` is where the folder will be; empty: not known."""
    yield "report.html", render(data).encode(errors="replace")
    summary = build_summary(page_of(data))
    colours = dict(re.findall(r"--([\w-]+): (#\w+)", stylesheet().partition("}")[0]))
    for finding in summary.findings:
        name = finding.anchor.removeprefix("finding-")
        image = f"{name}.png"
        page = render_page(
            "finding.html",
            finding=finding,
            run=data.run,
            command=summary.command,
            image=f"{address.rstrip('/')}/{image}" if address else image,
        )
        yield f"{name}.html", page.encode(errors="replace")
        yield image, preview(
            finding.title,
            finding.word,
            finding.basis,
            finding.told,
            finding.points,
            finding.claimed,
            colours,
        )
