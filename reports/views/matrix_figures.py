"""One figure of one configuration in the matrix: in words for the page, and packed for the script that shows
another figure in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from markupsafe import Markup

from reports.data import glossary, units

# Shade by distance from the reference of the row: better, the same, worse; the last has no upper end.
HEAT_STEPS = (0.9, 0.995, 1.005, 1.1, 1.3, 2)


@dataclass(frozen=True)
class Figure:
    """One metric of one configuration."""

    text: str
    exact: str
    heat: int | None
    ratio: str  # ratio to the reference of the row
    interval: str


def figure_of(entry: dict[str, Any], metric: str, reference: float | None) -> Figure:
    """`reference`: the value with which the row is compared; None if this is the reference, or there is none."""
    value = entry["values"].get(metric)
    unit = units.unit_of(metric)
    heat, ratio = None, ""
    if value is not None and reference is not None and value > 0 and reference > 0:
        distance = reference / value if glossary.more_is_better(metric) else value / reference
        heat = sum(distance > step for step in HEAT_STEPS)
        ratio = f"{units.plain(round(value / reference, 2))}×"
    return Figure(
        text=units.value_in(value, unit),
        exact=units.exact(value, unit),
        heat=heat,
        ratio=ratio,
        interval=_interval(entry["intervals"].get(metric), value, unit),
    )


def _interval(interval: list[float | None] | None, value: float | None, unit: str) -> str:
    if interval is None or value is None or interval[0] is None or interval[1] is None:
        return ""
    low, high = interval
    if low == high:
        return ""
    return f"{units.value_in(low, unit)} … {units.value_in(high, unit)}"


def pack(metrics: Sequence[str], cells: Iterable[Sequence[Figure]]) -> Markup:
    """JSON for the script: by metric, the figures of all configurations in the order of the page. The same as
    markup was six times as large."""
    columns: dict[str, list[list[Any] | int]] = {metric: [] for metric in metrics}
    for figures in cells:
        for metric, figure in zip(metrics, figures):
            columns[metric].append(_packed(figure))
    text = json.dumps({"metrics": columns}, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _packed(figure: Figure) -> list[Any] | int:
    """Removes empty values at the end; 0 if nothing is known."""
    fields = [figure.text, figure.exact, figure.heat, figure.ratio, figure.interval]
    if figure.heat is None and figure.text == units.DASH:
        return 0
    while not fields[-1]:
        fields.pop()
    return fields
