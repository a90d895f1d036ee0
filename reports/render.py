"""Plain data → one self-contained page. Everything from a file is escaped by the templates."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from reports.charts.evidence import ArmIndex
from reports.charts.palette import AllocatorLooks, split_spec
from reports.data import glossary, units
from reports.data.history import read_history
from reports.data.read import Changes, RunData
from reports.views import cells as view_cells
from reports.views.before import build_before
from reports.views.changes import MAXIMUM_ROWS, build_changes
from reports.views.claims import build_claims
from reports.views.compare import build_compare
from reports.views.cost import build_cost
from reports.views.failures import build_failures
from reports.views.history import build_history
from reports.views.instrument import build_instrument, control_experiments
from reports.views.left import build_left
from reports.views.matrix import build_matrix
from reports.views.oom import build_oom
from reports.views.reference import build_references
from reports.views.summary import build_summary
from reports.views.tradeoffs import build_tradeoffs

TEMPLATES = Path(__file__).with_name("templates")
MAXIMUM_EMBEDDED = 2**20  # bytes of verdicts.json carried along for download


def render(data: RunData) -> str:
    """The whole page. The same input gives the same bytes."""
    matrix_entries: list[dict[str, Any]] = data.verdicts["matrix"] if data.verdicts else []
    looks = AllocatorLooks({record["cell"]["allocator"] for record in (*data.samples, *matrix_entries)})
    arms = ArmIndex(data.samples, matrix_entries)
    controls = control_experiments(data.run)
    measured = [sample for sample in data.samples if sample["experiment"] not in controls]
    entries = [entry for entry in matrix_entries if entry["experiment"] not in controls]
    cells = view_cells.build_cells(data.directory, measured, matrix_entries, looks)
    return render_page(
        "page.html",
        run=data.run,
        verdicts=data.verdicts,
        summary=build_summary(data, sum(1 for cell in cells if cell.alerts)),
        claims=build_claims(data.verdicts["claims"] if data.verdicts else [], arms, looks),
        matrix=build_matrix(matrix_entries, looks),
        cells=cells,
        cells_usual=[item for item in view_cells.usual_choices([view.cell for view in cells]).items() if item[1] != "none"],
        cells_listed=view_cells.MOST_LISTED,
        compare=build_compare(measured, entries, data.verdicts["exclusions"] if data.verdicts else [], looks),
        tradeoffs=build_tradeoffs(measured, entries, looks),
        left=build_left(data.directory, measured, looks),
        oom=build_oom(data.directory, measured, entries, looks),
        references=build_references(entries, data.verdicts["claims"] if data.verdicts else []),
        history=build_history(read_history(data.directory)),
        cost=build_cost(data.run),
        before=build_before(data),
        failures=build_failures(data.verdicts["failures"] if data.verdicts else []),
        instrument=build_instrument(data.verdicts),
        looks=[(split_spec(spec), looks[spec]) for spec in looks.ordered()],
        terms=glossary.terms(),
        words=glossary.verdicts(),
        embedded=_embedded(data),
    )


def render_changes(data: RunData, changes: Changes) -> str:
    """The page of two runs: `data` is the later one."""
    return render_page(
        "changes_page.html",
        run=data.run,
        before=changes.before.run,
        changes=build_changes(data, changes),
        missing=changes.missing,
        added=changes.added,
        most=MAXIMUM_ROWS,
        environment=changes.environment,
        not_compared=changes.not_compared,
    )


def unbroken(text: str) -> Markup:
    """Words of capitals, as NOT-TESTABLE-HERE, in one line with their number."""
    return Markup(re.sub(r"(?:\d+ )?[A-Z]+(?:-[A-Z]+)+", r'<span class="unbroken">\g<0></span>', str(escape(text))))


def render_page(template: str, **values: Any) -> str:
    """One template with the style, the script and the filters that all pages share."""
    style = _asset("style.css").replace("/* dark.css */\n", _asset("dark.css"))
    script = _asset("report.js") + _asset("compare.js") + _asset("svg.js")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bytes=units.bytes_, exact=units.exact, percent=units.percent, plain=units.plain, spec=split_spec,
        in_words=glossary.in_words, as_sentence=glossary.as_sentence, unbroken=unbroken,
    )
    return environment.get_template(template).render(
        **values,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: RunData) -> Markup | None:
    """run.json and verdicts.json as one data block; "<" cannot end the element it lies in."""
    text = json.dumps({"run": data.run, "verdicts": data.verdicts}, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAXIMUM_EMBEDDED:
        return None
    return Markup(text.replace("<", "\\u003c"))
