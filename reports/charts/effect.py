"""Shared by the two charts of a claim: the axis of effects, the claimed band, intervals."""

from __future__ import annotations

import math
from typing import Sequence

from reports.charts.area import Area
from reports.charts.evidence import Claimed, Point, Series
from reports.charts.evidence_text import effect_text
from reports.charts.style import colour, nice_bytes_ticks
from reports.data import units


def reach(points: Sequence[Point], claimed: Claimed | None) -> tuple[float, float]:
    """Limits that show every estimate, zero and the claim; very wide intervals are cut."""
    core = [0.0] + [point.effect for point in points if point.effect is not None]
    if claimed:
        core += [bound for bound in (claimed.value, claimed.low, claimed.high) if bound is not None]
    low, high = min(core), max(core)
    span = (high - low) or 0.1
    for point in points:
        for bound in point.ci95 or ():
            if bound is not None and low - 2 * span <= bound <= high + 2 * span:
                core.append(bound)
    low, high = min(core), max(core)
    margin = ((high - low) or 0.1) * 0.1
    return low - margin, high + margin


def effect_ticks(axes_ticks: Sequence[float], limits: tuple[float, float], series: Series) -> list[float]:
    """Ticks that are round in the series' own unit; matplotlib's are round only in powers of ten."""
    if told_as_factors(limits, series):
        return few_ticks([0.0] + [factor - 1 for factor in axes_ticks if factor > 1], limits)
    if series.relative or series.unit != "bytes":
        return few_ticks(axes_ticks, limits)
    step = nice_bytes_ticks(max(map(abs, limits)))[1]
    first, last = math.ceil(limits[0] / step), math.floor(limits[1] / step)
    return few_ticks([step * place for place in range(first, last + 1)], limits)


def tick_text(tick: float, limits: tuple[float, float], series: Series) -> str:
    """The label of a tick; zero needs no unit."""
    if told_as_factors(limits, series):
        return f"{units.plain(1 + tick)}×"
    if abs(tick) <= 1e-12:
        return "0"
    if series.relative:  # one notation per axis, although a sentence would use factors
        return f"{'+' if tick > 0 else ''}{units.percent(tick)}"
    return effect_text(tick, series)


def told_as_factors(limits: tuple[float, float], series: Series) -> bool:
    """Whether the axis is labelled in factors: from 3× on, percentages would be hard to read."""
    return series.relative and limits[1] > 10 and limits[0] > -limits[1]


def few_ticks(ticks: Sequence[float], limits: tuple[float, float]) -> list[float]:
    """About five ticks, with zero among them."""
    inside = [tick for tick in ticks if limits[0] <= tick <= limits[1]]
    step = max(1, math.ceil(len(inside) / 5))
    zero = next((place for place, tick in enumerate(inside) if abs(tick) < 1e-12), 0)
    return inside[zero % step :: step]


def claimed_band(area: Area, claimed: Claimed, *, horizontal: bool, line: bool = True) -> None:
    limits = area.get_ylim() if horizontal else area.get_xlim()
    low = limits[0] if claimed.low is None else claimed.low
    high = limits[1] if claimed.high is None else claimed.high
    span, draw = (area.axhspan, area.axhline) if horizontal else (area.axvspan, area.axvline)
    if claimed.low is not None or claimed.high is not None:
        span(low, high, "accepted")
    if line and claimed.value is not None:
        draw(claimed.value, color=colour("claim"), linewidth=1.6, dashes=(4, 3), zorder=1)


def draw_intervals(
    area: Area, points: Sequence[tuple[float, Point]], token: str, marker: str, *, horizontal: bool
) -> None:
    """The estimate at each place, with its intervals: thin 95 %, thick 90 %; hollow when simulated. Those that look
    alike are one line of matplotlib's, since each line takes long to draw."""
    known = [(place, point) for place, point in points if point.effect is not None]
    for name, width, alpha in (("ci95", 1.4, 1.0), ("ci90", 4.0, 0.4)):
        ends, places = _bars(area, known, name, horizontal=horizontal)
        if ends:
            line = (ends, places) if horizontal else (places, ends)
            area.plot(*line, color=colour(token), linewidth=width, alpha=alpha)
    for hollow in (False, True):
        marks = [(place, point.effect) for place, point in known if point.simulated == hollow]
        if not marks:
            continue
        places, effects = zip(*marks)
        area.plot(
            *((effects, places) if horizontal else (places, effects)),
            linestyle="none",
            marker=marker,
            markersize=6.5,
            markeredgewidth=1.5,
            color=colour(token),
            markerfacecolor=colour("surface") if hollow else colour(token),
            clip_on=False,
            zorder=3,
        )


def _bars(
    area: Area, points: Sequence[tuple[float, Point]], name: str, *, horizontal: bool
) -> tuple[list[float], list[float]]:
    """Ends and places of the intervals with this name, cut at the limits of the area. Gaps part them."""
    limits = area.get_xlim() if horizontal else area.get_ylim()
    ends: list[float] = []
    places: list[float] = []
    for place, point in points:
        bounds = getattr(point, name)
        if bounds is None or point.exact:
            continue
        low = limits[0] if bounds[0] is None else max(bounds[0], limits[0])
        high = limits[1] if bounds[1] is None else min(bounds[1], limits[1])
        ends += [low, high, math.nan]
        places += [place] * 3
    return ends, places
