"""Bytes of the device that are left, over the steps, from zero: one curve per strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy

from reports.charts.palette import Look
from reports.charts.style import (
    Chart,
    LegendItem,
    Table,
    add_axes,
    colour,
    format_value_axis,
    new_figure,
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
    figure = new_figure(280)
    axes = add_axes(figure, 78, 40, 20, 54)
    last = max(math.ceil(curve.at[-1]) for curve in curves)
    for curve in curves:
        kept = thin(curve.left, budget=_POINTS)
        xs, ys = numpy.append(curve.at[kept], last), numpy.append(curve.left[kept], curve.left[kept][-1])
        axes.step(
            xs, ys, where="post", color=colour(curve.look.token), linewidth=1.8, dashes=curve.look.dash or (None, None)
        )
        axes.plot(
            [xs[-1]], [ys[-1]], linestyle="none", marker=curve.look.marker, markersize=7,
            color=colour(curve.look.token), clip_on=False, zorder=3,
        )  # fmt: skip
    ticks = nice_bytes_ticks(max(int(curve.left.max()) for curve in curves))
    axes.set_yticks(ticks)
    axes.set_ylim(0, ticks[-1])
    axes.set_xlim(0, last * 1.01)
    steps = range(0, last, math.ceil(last / 8))
    axes.set_xticks([step + 0.5 for step in steps])
    axes.set_xticklabels(["set-up" if step == 0 else str(step) for step in steps])
    format_value_axis(axes, units.bytes_)
    axes.set_xlabel("step", color=colour("muted"), labelpad=6)
    axes.annotate(
        "left of the device, more is better", (0, 1), xycoords="axes fraction", xytext=(-70, 19),
        textcoords="offset points", color=colour("ink"),
    )  # fmt: skip
    legend = [LegendItem(curve.label, curve.look.token, marker=curve.look.marker) for curve in curves]
    words = ", ".join(f"{curve.label} at least {units.bytes_(curve.least)}" for curve in curves)
    return Chart(chart_id, title, to_svg(figure, chart_id, title, f"Bytes left: {words}."), table, legend)
