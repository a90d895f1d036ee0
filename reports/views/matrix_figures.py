"""One figure of one cell of the matrix: in words for the page, and packed for the script that puts
another figure in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from markupsafe import Markup

from reports.data import glossary, units
from reports.data.glossary import Word

# Shade by distance from the best of the row; the last has no upper end.
HEAT_STEPS = (1.0005, 1.03, 1.1, 1.3, 1.7, 2.5)


@dataclass(frozen=True)
class Figure:
    """One metric of one cell."""

    text: str
    exact: str
    heat: int | None
    ratio: str  # to the best of the row
    interval: str
    word: Word | None
    effect: str


def figure_of(entry: dict[str, Any], metric: str, best: float | None) -> Figure:
    """`best`: of the row."""
    value = entry["values"].get(metric)
    unit = units.unit_of(metric)
    comparison = entry["comparisons"].get(metric)
    heat, ratio = None, ""
    if value is not None and best is not None and value > 0 and best > 0:
        distance = best / value if glossary.more_is_better(metric) else value / best
        heat = sum(distance > step for step in HEAT_STEPS)
        ratio = "best" if heat == 0 else f"{units.plain(round(distance, 2))}× best"
    effect = ""
    if comparison is not None:
        relative = comparison["scale"] == "log_ratio"
        effect = (
            units.effect(comparison.get("effect")) if relative else units.value_in(comparison["theta"], unit)
        )
    return Figure(
        text=units.value_in(value, unit),
        exact=units.exact(value, unit),
        heat=heat,
        ratio=ratio,
        interval=_interval(entry["intervals"].get(metric), value, unit),
        word=glossary.verdict(comparison["verdict"]) if comparison else None,
        effect=effect,
    )


def _interval(interval: list[float | None] | None, value: float | None, unit: str) -> str:
    if interval is None or value is None or interval[0] is None or interval[1] is None:
        return ""
    low, high = interval
    if low == high:
        return ""
    return f"{units.value_in(low, unit)} … {units.value_in(high, unit)}"


def pack(metrics: Sequence[str], cells: Iterable[Sequence[Figure]]) -> Markup:
    """JSON for the script: by metric, the figures of all cells in the order of the page. The same as
    markup took six times the room."""
    columns: dict[str, list[list[Any] | int]] = {metric: [] for metric in metrics}
    words: dict[str, tuple[str, str]] = {}
    for figures in cells:
        for metric, figure in zip(metrics, figures):
            columns[metric].append(_packed(figure))
            if figure.word:
                words[figure.word.word] = figure.word.tone, figure.word.icon
    text = json.dumps({"words": words, "metrics": columns}, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _packed(figure: Figure) -> list[Any] | int:
    """Without what is empty at the end; 0: nothing is known."""
    word = figure.word.word if figure.word else ""
    fields = [figure.text, figure.exact, figure.heat, figure.ratio, figure.interval, word, figure.effect]
    if figure.heat is None and figure.text == units.DASH:
        return 0
    while not fields[-1]:
        fields.pop()
    return fields
