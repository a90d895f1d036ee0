"""Plain data → one self-contained page. Everything from a file is escaped by the templates."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from reports.charts.palette import split_spec
from reports.data import glossary, units
from reports.data.read import Changes, RunData
from reports.views.changes import MAXIMUM_ROWS, build_changes
from reports.views.first_screen.summary import build_summary
from reports.views.page import page_of, sections

TEMPLATES = Path(__file__).with_name("templates")


def render(data: RunData) -> str:
    """The whole page. The same input gives the same bytes."""
    page = page_of(data)
    page.draw()
    built = {section.address: page[section.address] for section in sections()}
    return render_page(
        "page.html",
        **built,
        built=built,
        sections=[section for section in sections() if built[section.address]],
        summary=build_summary(page),
        run=data.run,
        verdicts=data.verdicts,
        looks=[(split_spec(spec), page.looks[spec]) for spec in page.looks.ordered()],
        terms=glossary.terms(),
        words=glossary.verdicts(),
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
    """Keeps words in capitals, such as NOT-TESTABLE-HERE, on one line with their number."""
    return Markup(re.sub(r"(?:\d+ )?[A-Z]+(?:-[A-Z]+)+", r'<span class="unbroken">\g<0></span>', str(escape(text))))


def render_page(template: str, **values: Any) -> str:
    """Loads a template with the style, the script and the filters that all pages share."""
    style = stylesheet()
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


def stylesheet() -> str:
    return _asset("style.css").replace("/* dark.css */\n", _asset("dark.css"))


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

