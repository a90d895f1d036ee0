"""A run in formats of other programs: one module per format, from plain data to one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from reports.data.read import Changes, RunData
from reports.exports import google_benchmark, junit, markdown, perfetto, table


@dataclass(frozen=True)
class Format:
    name: str  # of the option
    what: str
    write: Callable[[RunData, Changes | None], str]
    compares: bool  # can show the changes since another run


FORMATS = (
    Format("md", "a job summary in Markdown", markdown.write, True),
    Format("junit", "JUnit XML: claims, configurations and checks of the instrument as test cases", junit.write, True),
    Format("gbench", "Google Benchmark's JSON, for its compare.py", google_benchmark.write, False),
    Format("csv", "every sample as a row", table.write, False),
    Format("perfetto", "recorded traces for ui.perfetto.dev or chrome://tracing", perfetto.write, False),
)
