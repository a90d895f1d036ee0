"""A sweep: the change as the parameter varies, on the claimed band, with one curve per metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from reports.charts.area import Area
from reports.charts.effect import claimed_band, draw_intervals, effect_ticks, reach, tick_text
from reports.charts.evidence import Claimed, Point, Series
from reports.charts.evidence_text import claim_legend, describe, effect_text, evidence_table
from reports.charts.palette import Look
from reports.charts.style import (
    Chart,
    Drawing,
    LegendItem,
    colour,
    nice_bytes_ticks,
    nice_ticks,
)
from reports.charts.svg import to_svg
from reports.data import units

# A change belongs to two allocators, so several curves take the colour of their kind of memory
# instead, and the shape and dash of their moment.
_KIND_TOKENS = ("r0", "r4", "r5", "r3", "r2")
_MOMENTS: dict[str, tuple[str, tuple[float, ...]]] = {
    "initial": ("o", (1.5, 2)),
    "after_step_1": ("s", (5, 2)),
    "warmup_peak": ("^", (6, 2, 1.5, 2)),
    "steady_peak": ("D", ()),
    "overall_peak": ("v", ()),
}


@dataclass(frozen=True)
class _Curve:
    """Metrics whose effects are the same everywhere share one curve."""

    series: Sequence[Series]
    token: str
    marker: str
    dash: tuple[float, ...]

    @property
    def label(self) -> str:
        names = [series.words for series in self.series]
        if len(names) == 1:
            return names[0]
        bases = {name.partition(", ")[0] for name in names}
        if len(bases) == 1:
            return f"{bases.pop()}: " + " = ".join(name.partition(", ")[2] for name in names)
        return " = ".join(names)


def sweep_chart(chart_id: str, title: str, group: Sequence[Series], claimed: Claimed | None) -> Chart:
    """`group`: one experiment, one pair of variants, one or several metrics. For a single metric the
    variants' values are drawn too, from zero and apart from the change."""
    labels = list(dict.fromkeys(point.label for series in group for point in series.points))
    curves = _curves(group)
    first = group[0]
    with_values = len(group) == 1 and any(point.baseline is not None for point in first.points)
    drawing = Drawing(350 if with_values else 270)
    if with_values:
        _draw_values(Area(drawing, 78, 10, 14, 214), labels, first)
    below = Area(drawing, 78, 190 if with_values else 32, 14, 48, floor=False)
    _draw_effects(below, labels, curves, claimed)
    against = f", {first.treatment_arm} against {first.baseline_arm}" if first.baseline_arm else ""
    below.heading(f"change{against}" if against else first.treatment_arm, (-72, 13))
    _label_points(below, labels, first.parameter)
    hover = below.hover(
        list(range(len(labels))),
        [f"{first.parameter} {label}".strip() for label in labels],
        [{"name": curve.label, "text": [_reading(curve, label) for label in labels]} for curve in curves],
    )
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, " ".join(describe(series, claimed) for series in group)),
        evidence_table(group),
        _legend(curves, first, with_values) + claim_legend(claimed, first),
        hover=hover,
    )


def _curves(group: Sequence[Series]) -> list[_Curve]:
    if len(group) == 1:
        look = group[0].treatment_look
        return [_Curve(group, look.token, look.marker, look.dash)]
    same: dict[tuple[object, ...], list[Series]] = {}
    for series in group:
        if series.has_effect:
            key = tuple((point.label, point.effect, point.ci95) for point in series.points)
            same.setdefault(key, []).append(series)
    kinds = list(dict.fromkeys(series.metric.partition(".")[0] for series in group))
    curves = []
    for members in same.values():
        kind, _, moment = members[-1].metric.partition(".")
        marker, dash = _MOMENTS.get(moment, ("o", ()))
        curves.append(_Curve(members, _KIND_TOKENS[kinds.index(kind) % len(_KIND_TOKENS)], marker, dash))
    return curves


def _legend(curves: Sequence[_Curve], first: Series, with_values: bool) -> list[LegendItem]:
    if not with_values:
        return [LegendItem(curve.label, curve.token, marker=curve.marker) for curve in curves]
    pairs = ((first.treatment_arm, first.treatment_look), (first.baseline_arm, first.baseline_look))
    return [LegendItem(arm, look.token, marker=look.marker) for arm, look in pairs]


def _point_at(series: Series, label: str) -> Point | None:
    return next((point for point in series.points if point.label == label), None)


def _reading(curve: _Curve, label: str) -> str:
    point = _point_at(curve.series[0], label)
    if point is None or point.effect is None:
        return "no result"
    series = curve.series[0]
    text = effect_text(point.effect, series)
    if len(curve.series) == 1 and point.baseline is not None:
        text += f" ({units.value_in(point.treatment, series.unit)} / {units.value_in(point.baseline, series.unit)})"
    return text


def _draw_values(area: Area, labels: Sequence[str], series: Series) -> None:
    values = [value for point in series.points for value in (point.baseline, point.treatment) if value is not None]
    ticks = (nice_bytes_ticks if series.unit == "bytes" else nice_ticks)(max([*values, 0]), 3)
    area.set_ylim(0, ticks[-1])
    area.yticks(ticks, lambda tick: units.value_in(tick, series.unit))
    area.set_xlim(-0.5, len(labels) - 0.5)
    _value_curve(area, labels, series.baseline_look, series, baseline=True)
    _value_curve(area, labels, series.treatment_look, series, baseline=False)


def _value_curve(area: Area, labels: Sequence[str], look: Look, series: Series, *, baseline: bool) -> None:
    known = []
    for point in series.points:
        value = point.baseline if baseline else point.treatment
        if value is not None:
            known.append((labels.index(point.label), value))
    hollow = any(point.simulated for point in series.points)
    _plot(area, known, look.token, look.marker, look.dash, hollow=hollow)


def _plot(
    area: Area,
    known: Sequence[tuple[float, float]],
    token: str,
    marker: str,
    dash: tuple[float, ...],
    *,
    hollow: bool,
) -> None:
    area.plot(
        [x for x, _ in known],
        [y for _, y in known],
        color=colour(token),
        linewidth=1.6,
        dashes=dash or (None, None),
        marker=marker,
        markersize=5.5,
        markeredgewidth=1.5,
        markerfacecolor=colour("surface") if hollow else colour(token),
        clip_on=False,
    )


def _draw_effects(area: Area, labels: Sequence[str], curves: Sequence[_Curve], claimed: Claimed | None) -> None:
    points = [point for curve in curves for point in curve.series[0].points]
    limits = reach(points, claimed)
    area.set_xlim(-0.5, len(labels) - 0.5)
    area.set_ylim(*limits)
    if claimed:
        claimed_band(area, claimed, horizontal=True)
    area.axhline(0, color=colour("faint"), linewidth=1)
    for curve in curves:
        series = curve.series[0]
        known = [(labels.index(point.label), point.effect) for point in series.points if point.effect is not None]
        area.plot(
            [x for x, _ in known],
            [y for _, y in known],
            color=colour(curve.token),
            linewidth=1.4,
            dashes=curve.dash or (None, None),
        )
        placed = [(labels.index(point.label), point) for point in series.points]
        draw_intervals(area, placed, curve.token, curve.marker, horizontal=False)
    first = curves[0].series[0]
    ticks = effect_ticks(area.round_places(across=False), limits, first)
    area.yticks(ticks, [tick_text(tick, limits, first) for tick in ticks])


def _label_points(area: Area, labels: Sequence[str], parameter: str) -> None:
    widest = max(len(label) for label in labels)
    step = math.ceil(len(labels) / max(2, 60 // (widest + 2)))
    shown = list(range(0, len(labels), step))
    area.xticks(shown, [labels[place] for place in shown], pad=8)
    if parameter:
        area.caption(parameter, pad=4)


