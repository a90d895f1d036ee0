"""A claim's evidence: curves over a sweep, or one row per measurement, against what is claimed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from matplotlib.axes import Axes

from reports import units
from reports.chart_style import (
    Chart,
    Datum,
    LegendItem,
    Table,
    add_axes,
    colour,
    format_value_axis,
    hover_data,
    new_figure,
    nice_bytes_ticks,
    nice_ticks,
    to_svg,
)
from reports.palette import Look


@dataclass(frozen=True)
class Point:
    """One piece of evidence, ready to draw. Effects are relative changes, or differences in the
    metric's unit when `relative` is false."""

    label: str
    baseline: float | None
    treatment: float | None
    effect: float | None
    ci90: tuple[float | None, float | None] | None
    ci95: tuple[float | None, float | None] | None
    exact: bool
    simulated: bool


@dataclass(frozen=True)
class Series:
    """The evidence of one experiment on one metric."""

    name: str  # of the experiment
    parameter: str  # what the sweep runs through
    metric: str
    unit: str
    relative: bool
    baseline_arm: str
    treatment_arm: str
    baseline_look: Look
    treatment_look: Look
    points: Sequence[Point]


@dataclass(frozen=True)
class Claimed:
    value: float | None
    low: float | None
    high: float | None


def effect_text(value: float | None, series: Series) -> str:
    if series.relative:
        return units.effect(value)
    text = units.value_in(value, series.unit)
    return f"+{text}" if value is not None and value > 0 else text


def interval_text(bounds: tuple[float | None, float | None] | None, series: Series) -> str:
    if bounds is None:
        return ""
    low, high = (effect_text(bound, series) if bound is not None else "unbounded" for bound in bounds)
    return f"{low} … {high}"


def evidence_table(all_series: Sequence[Series]) -> Table:
    rows = []
    for series in all_series:
        for point in series.points:
            rows.append(
                (
                    Datum(series.name),
                    Datum(point.label, sort=_number(point.label)),
                    Datum(series.metric),
                    _value_datum(point.baseline, series.unit),
                    _value_datum(point.treatment, series.unit),
                    Datum(effect_text(point.effect, series), units.exact(point.effect), point.effect),
                    Datum("exact" if point.exact else interval_text(point.ci90, series)),
                )
            )
    first = all_series[0] if all_series else None
    return Table(
        (
            "experiment",
            "point",
            "metric",
            first.baseline_arm or "baseline" if first else "baseline",
            first.treatment_arm if first else "treatment",
            "change",
            "90 % interval",
        ),
        rows,
    )


def _value_datum(value: float | None, unit: str) -> Datum:
    return Datum(units.value_in(value, unit), units.exact(value, unit), value)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def sweep_chart(chart_id: str, title: str, series: Series, claimed: Claimed | None) -> Chart:
    """Above: both arms' values from zero. Below: the change with its interval on the claimed band."""
    has_values = any(point.baseline is not None for point in series.points)
    figure = new_figure(340 if has_values else 220)
    xs = list(range(len(series.points)))
    if has_values:
        top = add_axes(figure, 78, 10, 14, 208)
        _draw_values(top, xs, series)
    below = add_axes(figure, 78, 184 if has_values else 34, 14, 48)
    _draw_effects(below, xs, series, claimed)
    _caption(below, f"change, {series.treatment_arm} against {series.baseline_arm}" if series.baseline_arm else "value")
    _label_points(below, series)
    hover = hover_data(
        below,
        xs,
        [f"{series.parameter} {point.label}".strip() for point in series.points],
        [
            {"name": "change", "text": [_change_text(point, series) for point in series.points]},
            {"name": series.treatment_arm, "values": [point.treatment for point in series.points]},
            {"name": series.baseline_arm or "baseline", "values": [point.baseline for point in series.points]},
        ],
        series.unit,
    )
    legend = [LegendItem(series.treatment_arm, series.treatment_look.token, "line", series.treatment_look.marker)]
    if has_values:
        look = series.baseline_look
        legend.append(LegendItem(series.baseline_arm, look.token, "line", look.marker))
    legend += _claim_legend(claimed)
    return Chart(
        chart_id,
        title,
        to_svg(figure, chart_id, title, _describe(series, claimed)),
        evidence_table([series]),
        legend,
        hover=hover,
    )


def forest_chart(chart_id: str, title: str, all_series: Sequence[Series], claimed: Claimed | None) -> Chart:
    """One row per measurement: estimate and interval on the claimed band."""
    rows = [(series, point) for series in all_series for point in series.points]
    figure = new_figure(46 * len(rows) + 44)
    axes = add_axes(figure, 8, 6, 8, 34)
    axes.grid(False)
    axes.set_ylim(len(rows) - 0.3, -0.75)
    axes.set_yticks([])
    reach = _reach([point for _, point in rows], claimed)
    axes.set_xlim(*reach)
    if claimed:
        _claimed_band(axes, claimed, horizontal=False)
    axes.axvline(0, color=colour("faint"), linewidth=1)
    for row, (series, point) in enumerate(rows):
        _interval(axes, point, reach, row, series.treatment_look, horizontal=True)
        name = " · ".join(part for part in (series.name, point.label, series.metric) if part)
        axes.text(
            0, row - 0.34, name, transform=axes.get_yaxis_transform(), va="center", color=colour("ink"), gid="halo"
        )
        axes.text(
            1,
            row - 0.34,
            _change_text(point, series),
            transform=axes.get_yaxis_transform(),
            va="center",
            ha="right",
            color=colour("muted"),
            gid="halo",
        )
    ticks = [tick for tick in axes.get_xticks() if reach[0] <= tick <= reach[1]]
    axes.set_xticks(ticks[:: max(1, math.ceil(len(ticks) / 5))])
    axes.xaxis.set_major_formatter(lambda tick, _: effect_text(tick, all_series[0]))
    axes.set_xlim(*reach)
    look = all_series[0].treatment_look
    legend = [LegendItem(f"{all_series[0].treatment_arm}: estimate, 90 % and 95 % interval", look.token, "line", "o")]
    return Chart(
        chart_id,
        title,
        to_svg(figure, chart_id, title, " ".join(_describe(series, claimed) for series in all_series)),
        evidence_table(all_series),
        legend + _claim_legend(claimed),
    )


def _change_text(point: Point, series: Series) -> str:
    text = effect_text(point.effect, series)
    if point.exact:
        return text + (" (simulated, exact)" if point.simulated else " (exact)")
    if point.ci90 and None not in point.ci90:
        text += f"  [{interval_text(point.ci90, series)}]"
    return text + (" (simulated)" if point.simulated else "")


def _draw_values(axes: Axes, xs: Sequence[int], series: Series) -> None:
    values = [value for point in series.points for value in (point.baseline, point.treatment) if value is not None]
    ticks = (nice_bytes_ticks if series.unit == "bytes" else nice_ticks)(max([*values, 0]), 3)
    axes.set_yticks(ticks)
    axes.set_ylim(0, ticks[-1])
    format_value_axis(axes, lambda tick: units.value_in(tick, series.unit))
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_xticks([])
    for look, value_of in (
        (series.baseline_look, lambda point: point.baseline),
        (series.treatment_look, lambda point: point.treatment),
    ):
        _curve(axes, xs, [value_of(point) for point in series.points], look, series)


def _curve(axes: Axes, xs: Sequence[int], values: Sequence[float | None], look: Look, series: Series) -> None:
    known = [(x, value) for x, value in zip(xs, values) if value is not None]
    hollow = any(point.simulated for point in series.points)
    axes.plot(
        [x for x, _ in known],
        [value for _, value in known],
        color=colour(look.token),
        linewidth=1.8,
        dashes=look.dash or (None, None),
        marker=look.marker,
        markersize=6,
        markeredgewidth=1.6,
        markerfacecolor=colour("surface") if hollow else colour(look.token),
        clip_on=False,
    )


def _draw_effects(axes: Axes, xs: Sequence[int], series: Series, claimed: Claimed | None) -> None:
    reach = _reach(series.points, claimed)
    axes.set_xlim(-0.5, len(xs) - 0.5)
    axes.set_ylim(*reach)
    if claimed:
        _claimed_band(axes, claimed, horizontal=True)
    axes.axhline(0, color=colour("faint"), linewidth=1)
    axes.spines["bottom"].set_visible(False)
    look = series.treatment_look
    known = [(x, point.effect) for x, point in zip(xs, series.points) if point.effect is not None]
    axes.plot([x for x, _ in known], [y for _, y in known], color=colour(look.token), linewidth=1, alpha=0.45)
    for x, point in zip(xs, series.points):
        _interval(axes, point, reach, x, look, horizontal=False)
    ticks = [tick for tick in axes.get_yticks() if reach[0] <= tick <= reach[1]]
    axes.set_yticks(ticks[:: max(1, math.ceil(len(ticks) / 5))])
    format_value_axis(axes, lambda tick: effect_text(tick, series))
    axes.set_ylim(*reach)


def _interval(
    axes: Axes, point: Point, reach: tuple[float, float], place: float, look: Look, *, horizontal: bool
) -> None:
    if point.effect is None:
        return
    for bounds, width in ((point.ci95, 1.4), (point.ci90, 4.0)):
        if bounds is None or point.exact:
            continue
        low = reach[0] if bounds[0] is None else max(bounds[0], reach[0])
        high = reach[1] if bounds[1] is None else min(bounds[1], reach[1])
        line = ([low, high], [place, place]) if horizontal else ([place, place], [low, high])
        axes.plot(*line, color=colour(look.token), linewidth=width, alpha=1 if width < 2 else 0.4)
    centre = ([point.effect], [place]) if horizontal else ([place], [point.effect])
    axes.plot(
        *centre,
        linestyle="none",
        marker=look.marker,
        markersize=7,
        markeredgewidth=1.6,
        color=colour(look.token),
        markerfacecolor=colour("surface") if point.simulated else colour(look.token),
        clip_on=False,
    )


def _reach(points: Sequence[Point], claimed: Claimed | None) -> tuple[float, float]:
    """Limits that show every estimate, zero and the claim; intervals may be cut at three times that."""
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


def _claimed_band(axes: Axes, claimed: Claimed, *, horizontal: bool) -> None:
    limits = axes.get_ylim() if horizontal else axes.get_xlim()
    low = limits[0] if claimed.low is None else claimed.low
    high = limits[1] if claimed.high is None else claimed.high
    span, line = (axes.axhspan, axes.axhline) if horizontal else (axes.axvspan, axes.axvline)
    if claimed.low is not None or claimed.high is not None:
        span(low, high, color=colour("accepted"), linewidth=0, zorder=0)
    if claimed.value is not None:
        line(claimed.value, color=colour("claim"), linewidth=1.6, dashes=(4, 3), zorder=1)


def _claim_legend(claimed: Claimed | None) -> list[LegendItem]:
    legend = []
    if claimed and claimed.value is not None:
        legend.append(LegendItem(f"claimed {units.effect(claimed.value)}", "claim", "dash"))
    if claimed and (claimed.low is not None or claimed.high is not None):
        legend.append(LegendItem("counts as reproduced", "accepted", "band"))
    return legend


def _caption(axes: Axes, text: str) -> None:
    axes.annotate(
        text,
        (0, 1),
        xycoords="axes fraction",
        xytext=(-70, 14),
        textcoords="offset points",
        color=colour("ink"),
    )


def _label_points(axes: Axes, series: Series) -> None:
    count = len(series.points)
    widest = max(len(point.label) for point in series.points)
    step = math.ceil(count / max(2, 60 // (widest + 2)))
    shown = list(range(0, count, step))
    axes.set_xticks(shown)
    axes.set_xticklabels([series.points[place].label for place in shown])
    axes.tick_params(axis="x", pad=8)
    if series.parameter:
        axes.set_xlabel(series.parameter, color=colour("muted"), labelpad=4)


def _describe(series: Series, claimed: Claimed | None) -> str:
    known = [point for point in series.points if point.effect is not None]
    if not known:
        return f"{series.name}, {series.metric}: no figure."
    low = min(known, key=lambda point: point.effect or 0)
    high = max(known, key=lambda point: point.effect or 0)
    text = f"{series.name}, {series.metric}: {series.treatment_arm}"
    if series.baseline_arm:
        text += f" against {series.baseline_arm}"
    text += f" changes it by {effect_text(low.effect, series)}"
    if len(known) > 1:
        text += f" (at {low.label}) to {effect_text(high.effect, series)} (at {high.label})"
    if claimed and claimed.value is not None:
        text += f"; claimed {units.effect(claimed.value)}"
    return text + "."


