"""Single measurements, one row each: estimate and interval on the claimed band."""

from __future__ import annotations

import math
from typing import Sequence

from reports.charts.area import Area
from reports.charts.effect import claimed_band, draw_intervals, effect_ticks, reach, tick_text
from reports.charts.evidence import Claimed, Series
from reports.charts.evidence_text import change_text, claim_legend, describe, evidence_table
from reports.charts.style import Chart, Drawing, LegendItem, colour
from reports.charts.svg import to_svg

ROW = 66


def forest_chart(chart_id: str, title: str, all_series: Sequence[Series], claimed: Claimed | None) -> Chart:
    """All series on one scale."""
    rows = [(series, point) for series in all_series for point in series.points if point.effect is not None]
    drawing = Drawing(round(ROW * (len(rows) + 0.5)) + 38)
    area = Area(drawing, 10, 4, 10, 34)
    area.set_ylim(len(rows) - 0.25, -0.75)
    limits = reach([point for _, point in rows], claimed)
    area.set_xlim(*limits)
    # Lines stand beside the marks only: they must not cross the words above them.
    beside = [end for row in range(len(rows)) for end in (row - 0.14, row + 0.26, math.nan)]
    area.plot([0] * len(beside), beside, color=colour("faint"), linewidth=1, zorder=1)
    if claimed:
        claimed_band(area, claimed, horizontal=False, line=False)
        if claimed.value is not None:
            area.plot(
                [claimed.value] * len(beside), beside, color=colour("claim"), linewidth=1.6, dashes=(4, 3), zorder=1
            )
    for row, (series, point) in enumerate(rows):
        look = series.treatment_look
        draw_intervals(area, [(row + 0.02, point)], look.token, look.marker, horizontal=True)
        name = " · ".join(part for part in (series.name, point.label, series.words) if part)
        for text, offset, token in ((name, -0.59, "ink"), (change_text(point, series), -0.27, "muted")):
            area.text(0.005, row + offset, text, token, transform=area.by_y, va="center", halo=True)
    first = all_series[0]
    ticks = effect_ticks(area.round_places(across=True), limits, first)
    area.xticks(ticks, [tick_text(tick, limits, first) for tick in ticks])
    against = f" against {first.baseline_arm}" if first.baseline_arm else ""
    look = first.treatment_look
    legend = [LegendItem(f"{first.treatment_arm}{against}", look.token, marker=look.marker)]
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, " ".join(describe(series, claimed) for series in all_series)),
        evidence_table(all_series),
        legend + claim_legend(claimed, first),
    )
