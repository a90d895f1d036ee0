"""Changes of exact metrics between two runs, arranged for the page: bytes and counts, no times."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.style import Datum
from reports.data import glossary, units
from reports.data.glossary import Word
from reports.data.read import Changes, RunData

MAXIMUM_ROWS = 2000
_WORDS = {
    "worse": Word("worse", "bad", "up", "Worse by more than 1 % on at least one exact metric."),
    "better": Word("better", "good", "down", "Better by more than 1 %, and worse on none."),
    "changed": Word("changed", "part", "right", "Different by at most 1 %."),
    "not comparable": Word("not comparable", "odd", "void", "One of the runs has no result, or other lowering rules."),
    "same": Word("same", "none", "equal", "Every exact metric is the same to the last bit."),
}


@dataclass(frozen=True)
class ChangedMetric:
    experiment: str
    arm: str
    word: Word
    metric: str
    name: str  # as in the file
    before: Datum
    after: Datum
    difference: Datum
    share: Datum


@dataclass(frozen=True)
class ChangesView:
    headline: str
    largest: str  # change; empty where there is none
    counts: Sequence[tuple[Word, int]]
    metrics: Sequence[ChangedMetric]
    shown: str
    told: Sequence[tuple[Word, str, str, str]]  # configurations that changed otherwise than in a metric
    verdicts: Sequence[tuple[str, str, Word, Word]]  # claims whose verdict changed: id, title, before, after
    judged: bool


def build_changes(data: RunData, changes: Changes) -> ChangesView:
    outcomes = Counter(cell["outcome"] for cell in changes.cells)
    rows = [(cell, change) for cell in changes.cells for change in cell["changes"]]
    order = list(_WORDS)
    rows.sort(key=lambda row: (order.index(row[1]["outcome"]), -abs(_share(row[1]))))
    return ChangesView(
        headline=_headline(outcomes, len(changes.cells), bool(rows)),
        largest=_largest(rows),
        counts=[(word, outcomes[name]) for name, word in _WORDS.items() if outcomes[name]],
        metrics=[_metric(cell, change) for cell, change in rows[:MAXIMUM_ROWS]],
        shown=f"{MAXIMUM_ROWS:,} of {len(rows):,} changes shown, the largest." if len(rows) > MAXIMUM_ROWS else "",
        told=[
            (_WORDS[cell["outcome"]], cell["experiment"], cell["arm"], cell["sentence"])
            for cell in changes.cells
            if cell["outcome"] != "same" and not cell["changes"]
        ],
        verdicts=_verdicts(data, changes),
        judged=data.verdicts is not None and changes.before.verdicts is not None,
    )


def _headline(outcomes: Counter[str], cells: int, changed: bool) -> str:
    """Did it get worse? The counts of all outcomes stand below."""
    if cells == 0:
        return "The two runs have no configuration in common."
    if outcomes["same"] == cells:
        return f"Nothing changed: all {cells} configurations that both runs have are the same to the last bit."
    for outcome in ("worse", "better"):
        if outcomes[outcome]:
            return f"{outcome.capitalize()} in {outcomes[outcome]} of {cells} configurations."
    if not changed:
        return f"No figure changed, but {outcomes['not comparable']} of {cells} configurations cannot be compared."
    return "Nothing got worse by more than 1 % of what can be compared."


def _largest(rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    if not rows:
        return ""
    cell, change = rows[0]
    row = _metric(cell, change)
    return (
        f"The largest change: {glossary.quantity(change['metric'])} went from {row.before.text} to {row.after.text} "
        f"({row.share.text}) in {row.experiment} [{row.arm}]."
    )


def _share(change: dict[str, Any]) -> float:
    before, after = change["before"], change["after"]
    return math.inf if before == 0 else (after - before) / abs(before)


def _metric(cell: dict[str, Any], change: dict[str, Any]) -> ChangedMetric:
    unit = units.canonical(change["unit"], change["metric"])

    def datum(value: float) -> Datum:
        return Datum(units.value_in(value, unit), units.exact(value, unit), value)

    difference, share = change["after"] - change["before"], _share(change)
    text = units.value_in(difference, unit)
    return ChangedMetric(
        experiment=cell["experiment"],
        arm=cell["arm"],
        word=_WORDS[change["outcome"]],
        metric=glossary.metric(change["metric"]),
        name=change["metric"],
        before=datum(change["before"]),
        after=datum(change["after"]),
        difference=Datum("+" + text if difference > 0 else text, units.exact(difference, unit), difference),
        share=Datum(units.effect(share) if math.isfinite(share) else "from 0", sort=share if math.isfinite(share) else 1e300),
    )


def _verdicts(data: RunData, changes: Changes) -> list[tuple[str, str, Word, Word]]:
    before = changes.verdicts_before()
    return [
        (claim["id"], claim["title"], glossary.verdict(before[claim["id"]]), glossary.verdict(claim["verdict"]))
        for claim in (data.verdicts or {"claims": []})["claims"]
        if claim["id"] in before and before[claim["id"]] != claim["verdict"]
    ]
