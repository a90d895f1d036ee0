"""Bytes of the device that are left, over the steps, from zero: one curve per strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy

from reports.charts.area import Area
from reports.charts.palette import Look
from reports.charts.style import (
    Chart,
    Drawing,
    LegendItem,
    Table,
    colour,
    nice_bytes_ticks,
)
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.trace import thin

_POINTS = 160  # points of a curve


@dataclass(frozen=True)
class Left:
    """`at` in steps: set-up is from 0 to 1, step 1 from 1 to 2."""

    label: str
    look: Look
    at: numpy.ndarray
    left: numpy.ndarray  # bytes
    before: int  # left before step 1
    after: int  # left after step 1
    least: int


def left_chart(chart_id: str, title: str, curves: Sequence[Left], table: Table) -> Chart:
    """`table` is the data behind the chart."""
    drawing = Drawing(280)
    area = Area(drawing, 78, 40, 20, 54)
    last = max(math.ceil(curve.at[-1]) for curve in curves)
    for curve in curves:
        kept = thin(curve.left, budget=_POINTS)
        xs, ys = numpy.append(curve.at[kept], last), numpy.append(curve.left[kept], curve.left[kept][-1])
        area.plot(
            xs, ys, drawstyle="steps-post", color=colour(curve.look.token), linewidth=1.8,
            dashes=curve.look.dash or (None, None),
        )  # fmt: skip
        area.plot(
            [xs[-1]], [ys[-1]], linestyle="none", marker=curve.look.marker, markersize=7,
            color=colour(curve.look.token), clip_on=False, zorder=3,
        )  # fmt: skip
    ticks = nice_bytes_ticks(max(int(curve.left.max()) for curve in curves))
    area.set_ylim(0, ticks[-1])
    area.set_xlim(0, last * 1.01)
    steps = range(0, last, math.ceil(last / 8))
    area.yticks(ticks, units.bytes_)
    area.xticks([step + 0.5 for step in steps], ["set-up" if step == 0 else str(step) for step in steps])
    area.caption("step", pad=6)
    area.heading("left of the device, more is better", (-70, 19))
    legend = [LegendItem(curve.label, curve.look.token, marker=curve.look.marker) for curve in curves]
    words = ", ".join(f"{curve.label} at least {units.bytes_(curve.least)}" for curve in curves)
    return Chart(chart_id, title, to_svg(drawing, chart_id, title, f"Bytes left: {words}."), table, legend)
