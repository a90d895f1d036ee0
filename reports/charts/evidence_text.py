"""A claim's evidence in words and numbers: effects, intervals, its table, and what a chart shows."""

from __future__ import annotations

from typing import Sequence

from reports.charts.evidence import Bounds, Claimed, Point, Series
from reports.charts.style import Datum, LegendItem, Table
from reports.data import units


def effect_text(value: float | None, series: Series) -> str:
    if series.relative:
        return units.effect(value)
    text = units.value_in(value, series.unit)
    return f"+{text}" if series.baseline_arm and value is not None and value > 0 else text


def interval_text(bounds: Bounds, series: Series) -> str:
    if bounds is None:
        return ""
    low, high = (effect_text(bound, series) if bound is not None else "unbounded" for bound in bounds)
    return f"{low} … {high}"


def change_text(point: Point, series: Series) -> str:
    """The effect and how certain it is: "−62.0 %, simulated, exact"."""
    parts = [effect_text(point.effect, series)]
    if point.simulated:
        parts.append("simulated")
    if point.virtual:
        parts.append("virtual")
    if point.exact:
        parts.append("exact")
    elif point.ci90 and None not in point.ci90:
        parts.append(f"90 % interval {interval_text(point.ci90, series)}")
    return ", ".join(parts)


def claim_legend(claimed: Claimed | None, series: Series) -> list[LegendItem]:
    legend = []
    if claimed and claimed.value is not None:
        legend.append(LegendItem(f"claimed {effect_text(claimed.value, series)}", "claim", "dash"))
    if claimed and (claimed.low is not None or claimed.high is not None):
        legend.append(LegendItem("counts as reproduced", "accepted", "band"))
    return legend


def evidence_table(all_series: Sequence[Series]) -> Table:
    rows = []
    for series in all_series:
        for point in series.points:
            interval = "exact" if point.exact and point.effect is not None else interval_text(point.ci90, series)
            rows.append(
                (
                    Datum(series.name),
                    Datum(point.label, sort=_number(point.label)),
                    Datum(series.words),
                    _value(point.baseline, series.unit),
                    _value(point.treatment, series.unit),
                    Datum(effect_text(point.effect, series), units.exact(point.effect), point.effect),
                    Datum(interval),
                    Datum(point.verdict if point.effect is not None else point.why),
                )
            )
    first = all_series[0]
    parameter = next((series.parameter for series in all_series if series.parameter), "point")
    headers = ("experiment", parameter, "figure", first.baseline_arm or "baseline", first.treatment_arm)
    return Table((*headers, "change", "90 % interval", "verdict"), rows)


def _value(value: float | None, unit: str) -> Datum:
    return Datum(units.value_in(value, unit), units.exact(value, unit), value)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def describe(series: Series, claimed: Claimed | None) -> str:
    """One sentence for readers who cannot see the chart."""
    known = [point for point in series.points if point.effect is not None]
    if not known:
        return f"{series.name}, {series.words}: no figure."
    low = min(known, key=lambda point: point.effect or 0)
    high = max(known, key=lambda point: point.effect or 0)
    text = f"{series.name}, {series.words}, {series.treatment_arm}"
    if series.baseline_arm:
        text += f" against {series.baseline_arm}"
    text += f": {effect_text(low.effect, series)}"
    if len(known) > 1:
        text += f" (at {low.label}) to {effect_text(high.effect, series)} (at {high.label})"
    if claimed and claimed.value is not None:
        text += f"; claimed {effect_text(claimed.value, series)}"
    return text + "."
