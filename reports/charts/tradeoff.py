"""Peak memory against throughput, both from zero: one mark per strategy with its interval, and the
front of those that nothing surely beats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from reports.charts.area import Area
from reports.charts.palette import Look
from reports.charts.style import (
    Chart,
    Datum,
    Drawing,
    LegendItem,
    Table,
    colour,
    nice_bytes_ticks,
    nice_ticks,
)
from reports.charts.svg import to_svg
from reports.data import units

_LINE, _NEAR = 13, 24  # height of a number, and the distance at which two marks can both show theirs


@dataclass(frozen=True)
class Strategy:
    label: str
    look: Look
    peak: float
    speed: float
    low: float  # 95 % interval of speed; infinite if there are too few samples
    high: float
    front: bool
    first_step: Datum
    samples: int
    host: float  # bytes beside the device

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


def tradeoff_chart(chart_id: str, title: str, strategies: Sequence[Strategy], table: Table) -> Chart:
    """`strategies` in order of memory; `table` is the data behind the chart."""
    drawing = Drawing(320)
    area = Area(drawing, 78, 40, 20, 54)
    xticks = nice_bytes_ticks(max(strategy.peak for strategy in strategies))
    yticks = nice_ticks(max(strategy.high if strategy.bounded else strategy.speed for strategy in strategies) * 1.02)
    area.set_xlim(0, xticks[-1] * 1.02)  # so that no mark is cut off
    area.set_ylim(0, yticks[-1])
    area.xticks(xticks, [units.bytes_(tick) if tick else "0" for tick in xticks])
    area.yticks(yticks, units.plain)
    area.caption("peak reserved, less is better", pad=9)
    area.heading("samples per second, more is better", (-70, 19))
    front = [strategy for strategy in strategies if strategy.front]
    told = len(front) > 1 and all(strategy.bounded for strategy in front)  # a front without intervals ranks nothing
    if told:
        points = [(strategy.peak, strategy.speed) for strategy in front]
        area.plot(*zip(*points), color=colour("faint"), linewidth=1.4, dashes=(4, 3), zorder=1)
    # Strategies that differ on another axis than the allocator look alike and get numbers.
    numbered = len({(strategy.look.token, strategy.look.marker) for strategy in strategies}) < len(strategies)
    for strategy in strategies:
        token = colour(strategy.look.token)
        if strategy.bounded:
            area.plot([strategy.peak] * 2, [strategy.low, strategy.high], color=token, linewidth=1.6, zorder=2)
        area.plot(
            [strategy.peak], [strategy.speed], linestyle="none", marker=strategy.look.marker, markersize=8,
            color=token, alpha=1 if strategy.front else 0.45, clip_on=False, zorder=3,
        )  # fmt: skip
    if numbered:
        _number(area, strategies, xticks[-1], yticks[-1])
    legend = [
        LegendItem(f"{number}: {strategy.label}" if numbered else strategy.label, strategy.look.token, marker=strategy.look.marker)
        for number, strategy in enumerate(strategies, start=1)
    ]
    if told:
        legend.append(LegendItem("front: nothing surely beats these; others are paler", "faint", "dash"))
    names = ", ".join(strategy.label for strategy in front)
    description = f"{len(strategies)} strategies; nothing surely beats {names}."
    intervals = any(strategy.bounded for strategy in strategies)
    note = "Marks are medians over samples, " + (
        "bars their 95 % signed-rank intervals." if intervals else "which are too few for intervals."
    )
    return Chart(chart_id, title, to_svg(drawing, chart_id, title, description), table, legend, note=note)


def _number(area: Area, strategies: Sequence[Strategy], right: float, top: float) -> None:
    """Writes each mark's number in the legend beside it. Marks may overlap, their numbers do not."""
    across, up = area.box.width / right, area.box.height / top
    placed: list[tuple[float, float]] = []
    ordered = sorted(enumerate(strategies, start=1), key=lambda item: item[1].speed)
    marks = [strategy.peak * across for strategy in strategies]
    for number, strategy in ordered:
        x, y = strategy.peak * across, strategy.speed * up
        left = strategy.peak > right * 0.9 or any(0 < mark - x < _NEAR for mark in marks)
        place = x - 8 if left else x + 8
        at = max([y, *(other + _LINE for beside, other in placed if abs(beside - place) < _LINE)])
        placed.append((place, at))
        area.text(
            strategy.peak, strategy.speed, str(number), "ink", offset=(-8 if left else 8, at - y - 4),
            ha="right" if left else "left", halo=True, zorder=4,
        )  # fmt: skip
