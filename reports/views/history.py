"""The section about earlier nights: what is worse than accepted, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.history import Point, Series, history_chart
from reports.charts.style import Chart, Datum, Table
from reports.data.history import History, read_history
from reports.views.page import Section

MAXIMUM_CHARTS = 24


@dataclass(frozen=True)
class HistoryView:
    headline: str
    failures: Table | None
    notes: Table | None
    missing: Sequence[str]
    added: Sequence[str]
    marks: Sequence[str]  # sentences
    charts: Sequence[Chart]
    left_out: int  # the number of charts left out
    first: bool  # this is the first night


def build_history(history: History | None) -> HistoryView | None:
    """None if there are no earlier nights."""
    if history is None or not history.nights:
        return None
    check = history.check
    found = check["failures"] + check["notes"]
    wanted = dict.fromkeys((finding["what"], finding["metric"]) for finding in found if finding["metric"])
    # Figures without findings follow, up to the limit of charts.
    wanted |= dict.fromkeys((_name(cell), metric) for cell in history.nights[-1]["cells"] for metric in cell["noisy"])
    first = len(check["night_ids"]) < 2
    if first:
        wanted = {}  # one point makes no chart
    since = {(finding["what"], finding["metric"]): finding["since"] for finding in found}
    shown = list(wanted)[:MAXIMUM_CHARTS]
    return HistoryView(
        headline=check["headline"],
        failures=_table(check["failures"]),
        notes=_table(check["notes"]),
        missing=check["missing"],
        added=check["new"],
        marks=[_sentence(mark) for mark in check["marks"]],
        charts=[
            history_chart(f"history-{number}", _series(history, *place, since.get(place)))
            for number, place in enumerate(shown)
        ],
        left_out=len(wanted) - len(shown),
        first=first,
    )


def _name(cell: dict[str, Any]) -> str:
    return f"{cell['experiment']} [{cell['arm']}]"


def _series(history: History, name: str, metric: str, since: str | None) -> Series:
    ids = [night["night_id"] for night in history.nights]
    points = []
    for night in history.nights:
        cell = next((cell for cell in night["cells"] if _name(cell) == name), {"noisy": {}, "exact": {}})
        value = cell["noisy"].get(metric, cell["exact"].get(metric))
        points.append(Point(night["started"], night["commit"] or "", value))
    marks = [ids.index(mark["night_id"]) for mark in history.check["marks"] if mark["night_id"] in ids]
    return Series(name, metric, points, ids.index(since) if since in ids else None, marks)


def _table(findings: Sequence[dict[str, Any]]) -> Table | None:
    if not findings:
        return None
    rows = [
        [Datum(finding["what"]), Datum(finding["sentence"]), Datum(_commits(finding)), Datum(finding["since"])]
        for finding in findings
    ]
    return Table(("what", "change", "commits", "since"), rows)


def _commits(finding: dict[str, Any]) -> str:
    first, last = finding["previous_commit"], finding["since_commit"]
    return f"{(first or 'unknown')[:12]}..{(last or 'unknown')[:12]}"


def _sentence(mark: dict[str, Any]) -> str:
    changes = [f"{item['what']} was '{item['before']}' and is '{item['after']}'" for item in mark["differences"]]
    return f"{mark['night_id']}: {'; '.join(changes) or 'another machine of the same kind'}."


SECTION = Section(
    address="history",
    title="History",
    about="this run against earlier nights",
    place=80,
    build=lambda page: build_history(read_history(page.data.directory)),
)
