"""One figure of one configuration over the nights: where it shifted, and where the environment changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Sequence

from reports.charts.area import Area
from reports.charts.style import Chart, Datum, Drawing, LegendItem, Table, colour
from reports.charts.style import nice_bytes_ticks, nice_ticks
from reports.charts.svg import to_svg
from reports.data import glossary, units

HEIGHT = 190
COLOUR = "a0"


@dataclass(frozen=True)
class Point:
    night: str  # its start
    commit: str
    value: float | None


@dataclass(frozen=True)
class Series:
    cell: str
    metric: str
    points: Sequence[Point]
    shifted: int | None = None  # index of the first night of a shift
    marks: Sequence[int] = ()  # indices of first nights in another environment


def text_of(metric: str) -> Callable[[float | None], str]:
    if metric.endswith("_ns"):
        return units.nanoseconds
    return units.bytes_ if "_bytes" in metric else units.plain


def history_chart(chart_id: str, series: Series) -> Chart:
    text = text_of(series.metric)
    values = [math.nan if point.value is None else point.value for point in series.points]
    top = max((value for value in values if not math.isnan(value)), default=0)
    drawing = Drawing(HEIGHT)
    area = Area(drawing, 78, 14, 12, 40)
    area.plot(range(len(values)), values, color=colour(COLOUR), linewidth=1.5, marker="o", markersize=4, clip_on=False)
    for mark in series.marks:
        area.axvline(mark - 0.5, color=colour("faint"), linewidth=1, dashes=(4, 3))
    if series.shifted is not None:
        area.axvline(series.shifted - 0.5, color=colour("alert"), linewidth=1.8)
    ticks = _ticks(series.metric, top)
    area.set_ylim(0, ticks[-1])
    area.yticks(ticks, text)
    area.set_xlim(-0.5, max(len(values) - 0.5, 0.5))
    # Dates are long, so they are aligned inwards.
    for end, side in {len(values) - 1: "right", 0: "left"}.items():
        area.xticks([end], [series.points[end].night[:10]], pad=9, ha=side)
    name = glossary.metric(series.metric)
    title = f"{series.cell}: {name}"
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, _describe(series, text)),
        Table(
            ("night", "commit", "value"),
            [
                [Datum(point.night), Datum(point.commit[:12] or "unknown"),
                 Datum(text(point.value), units.exact(point.value), point.value)]
                for point in series.points
            ],
        ),
        _legend(series),
        hover=area.hover(
            list(range(len(values))),
            [f"{point.night[:10]}, {point.commit[:12] or 'unknown commit'}" for point in series.points],
            [{"name": name, "text": [text(point.value) for point in series.points]}],
        ),
    )


def _ticks(metric: str, top: float) -> list[float]:
    if "_bytes" in metric:
        return nice_bytes_ticks(top, 3)
    # Ticks are round in the unit in which they are printed.
    unit = next(size for size in (1e9, 1e6, 1e3, 1) if top >= size or size == 1)
    return [tick * unit for tick in nice_ticks(top / unit, 3)]


def _legend(series: Series) -> list[LegendItem]:
    legend = []
    if series.shifted is not None:
        legend.append(LegendItem("since this night", "alert"))
    if series.marks:
        legend.append(LegendItem("another environment", "faint", "dash"))
    return legend


def _describe(series: Series, text: Callable[[float | None], str]) -> str:
    words = [f"{len(series.points)} nights, the last one {text(series.points[-1].value)}."]
    if series.shifted is not None:
        words.append(f"Shifted on {series.points[series.shifted].night[:10]}.")
    words += [f"Another environment since {series.points[mark].night[:10]}." for mark in series.marks]
    return " ".join(words)
