"""The origin of the figures: machine, program, what was left out, the cost, and the glossary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Sequence

from markupsafe import Markup

from reports.data.read import RunData
from reports.views.before import Before, build_before
from reports.views.cost import Cost, build_cost
from reports.views.failures import Failed, build_failures
from reports.views.page import Page, Section

MAXIMUM_EMBEDDED = 2**20  # bytes of verdicts.json carried along for download


@dataclass(frozen=True)
class Provenance:
    before: Before | None
    cost: Cost | None
    failures: Sequence[Failed]
    embedded: Markup | None  # run.json and verdicts.json, for download


def _of_page(page: Page) -> Provenance:
    data = page.data
    failures = build_failures(page.verdicts.get("failures", []))
    return Provenance(build_before(data), build_cost(data.run), failures, _embedded(data))


def _embedded(data: RunData) -> Markup | None:
    """run.json and verdicts.json as one data block, without "<", which could end its element."""
    text = json.dumps({"run": data.run, "verdicts": data.verdicts}, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAXIMUM_EMBEDDED:
        return None
    return Markup(text.replace("<", "\\u003c"))


SECTION = Section("provenance", "Provenance", "machine, program, what was left out, and the glossary", 100, _of_page)
