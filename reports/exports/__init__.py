"""A run in formats of other programs: one module per format, from plain data to one text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from reports.data.read import Changes, RunData
from reports.exports import google_benchmark, junit, markdown, perfetto, table


@dataclass(frozen=True)
class Format:
    name: str  # of the option
    write: Callable[[RunData, Changes | None], str]
    compares: bool  # can show the changes since another run


FORMATS = (
    Format("md", markdown.write, True),
    Format("junit", junit.write, True),
    Format("gbench", google_benchmark.write, False),
    Format("csv", table.write, False),
    Format("perfetto", perfetto.write, False),
)
