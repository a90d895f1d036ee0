"""Peak memory against throughput, both from zero: one mark per strategy with its interval, and the
front of those that nothing surely beats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from reports import units
from reports.chart_style import (
    Chart,
    LegendItem,
    Table,
    add_axes,
    colour,
    format_value_axis,
    new_figure,
    nice_bytes_ticks,
    nice_ticks,
)
from reports.chart_svg import to_svg

if TYPE_CHECKING:
    from reports.view_tradeoffs import Strategy


def tradeoff_chart(chart_id: str, title: str, strategies: Sequence[Strategy], table: Table) -> Chart:
    """`strategies` in order of memory; `table` is the data behind the chart."""
    figure = new_figure(320)
    axes = add_axes(figure, 78, 34, 20, 54)
    xticks = nice_bytes_ticks(max(strategy.peak for strategy in strategies))
    yticks = nice_ticks(max(strategy.high if strategy.bounded else strategy.speed for strategy in strategies) * 1.02)
    axes.set_xticks(xticks)
    axes.set_yticks(yticks)
    axes.set_xlim(0, xticks[-1] * 1.02)  # so that no mark is cut in half
    axes.set_ylim(0, yticks[-1])
    axes.xaxis.set_major_formatter(lambda tick, _: units.bytes_(tick) if tick else "0")
    format_value_axis(axes, units.plain)
    axes.set_xlabel("peak reserved, less is better", color=colour("muted"), labelpad=9)
    axes.annotate(
        "samples per second, more is better", (0, 1), xycoords="axes fraction", xytext=(-70, 14),
        textcoords="offset points", color=colour("ink"),
    )  # fmt: skip
    front = [strategy for strategy in strategies if strategy.front]
    told = len(front) > 1 and all(strategy.bounded for strategy in front)  # else it ranks nobody
    if told:
        points = [(strategy.peak, strategy.speed) for strategy in front]
        axes.plot(*zip(*points), color=colour("faint"), linewidth=1.4, dashes=(4, 3), zorder=1)
    for strategy in strategies:
        token = colour(strategy.look.token)
        if strategy.bounded:
            axes.plot([strategy.peak] * 2, [strategy.low, strategy.high], color=token, linewidth=1.6, zorder=2)
        axes.plot(
            [strategy.peak], [strategy.speed], linestyle="none", marker=strategy.look.marker, markersize=8,
            color=token, alpha=1 if strategy.front else 0.45, clip_on=False, zorder=3,
        )  # fmt: skip
    legend = [LegendItem(strategy.label, strategy.look.token, marker=strategy.look.marker) for strategy in strategies]
    if told:
        legend.append(LegendItem("front: nothing surely beats these; others are paler", "faint", "dash"))
    names = ", ".join(strategy.label for strategy in front)
    description = f"{len(strategies)} strategies; nothing surely beats {names}."
    intervals = any(strategy.bounded for strategy in strategies)
    note = "Marks are medians over samples, " + (
        "bars their 95 % signed-rank intervals." if intervals else "which are too few for intervals."
    )
    return Chart(chart_id, title, to_svg(figure, chart_id, title, description), table, legend, note=note)
