"""Time and device allocations of every step of every sample: what growth costs
shows in the first steps.
"""

from __future__ import annotations

import math
import statistics
from typing import Any, Sequence

from reports.charts.area import Area
from reports.charts.palette import Look
from reports.charts.style import (
    Chart,
    Datum,
    Drawing,
    LegendItem,
    Table,
    colour,
    nice_ticks,
)
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.devices import simulated

MAXIMUM_LINES = 24


def steps_chart(chart_id: str, samples: Sequence[dict[str, Any]], look: Look) -> Chart | None:
    """`samples` are those of one configuration that have steps. None if there is nothing to draw."""
    # A simulated device computes nothing, so its times say nothing about training.
    times = [
        sample["step_time_ns"]
        for sample in samples
        if sample["step_time_ns"] and not simulated(sample["cell"])
    ]
    allocations = next(
        (sample["memory"]["device_allocations_per_step"] for sample in samples if sample["memory"]), []
    )
    steps = max([len(allocations), *(len(series) for series in times)], default=0)
    if steps == 0:
        return None
    warmup = samples[0]["warmup_steps"]
    medians = [
        statistics.median([series[step] for series in times if step < len(series)])
        for step in range(max((len(series) for series in times), default=0))
    ]
    timed = any(medians)
    drawing = Drawing((260 if timed else 50) + (120 if allocations else 0))
    area: Area | None = None
    if timed:
        area = Area(drawing, 78, 36, 12, 172 if allocations else 46)
        _draw_times(area, times, medians, look)
        _frame(area, steps, warmup, "time per step", labelled=not allocations)
    if allocations:
        below = Area(drawing, 78, 252 if timed else 36, 12, 46)
        _draw_allocations(below, allocations)
        _frame(below, steps, warmup, "device allocations per step", labelled=True)
    base = area or below
    title = "Every step" if timed else "Device allocations, step by step"
    hover = base.hover(
        list(range(1, steps + 1)),
        [f"step {step}" + (", warm-up" if step <= warmup else "") for step in range(1, steps + 1)],
        [
            {"name": "median time", "text": [units.nanoseconds(value) for value in medians]},
            {"name": "device allocations", "text": [units.plain(count) for count in allocations]},
        ],
    )
    legend = []
    if timed:
        legend.append(LegendItem(f"median of {len(times)} samples", look.token, "line", look.marker))
        if len(times) > 1:
            legend.append(LegendItem("one sample", look.token, "thin"))
    cut = f"{MAXIMUM_LINES} of {len(times)} samples are drawn." if len(times) > MAXIMUM_LINES else ""
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, _describe(medians if timed else [], allocations)),
        _table(times if timed else [], medians, allocations, warmup, steps),
        legend,
        note=f"The warm-up, {warmup} of {steps} steps, is shaded and left out of figures after warm-up. {cut}".strip(),
        hover=hover,
    )


def _draw_times(area: Area, times: Sequence[Sequence[int]], medians: Sequence[float], look: Look) -> None:
    if len(times) > 1:
        for series in times[:MAXIMUM_LINES]:
            area.plot(range(1, len(series) + 1), series, color=colour(look.token), linewidth=1, alpha=0.35)
    area.plot(
        range(1, len(medians) + 1),
        medians,
        color=colour(look.token),
        linewidth=2,
        marker=look.marker if len(medians) <= 40 else "",
        markersize=6,
        clip_on=False,
    )
    top = max(max(series) for series in times)
    # Ticks are round in the unit in which they are printed.
    unit = next(size for size in (1e9, 1e6, 1e3, 1) if top >= size or size == 1)
    ticks = [tick * unit for tick in nice_ticks(top / unit)]
    area.set_ylim(0, ticks[-1])
    area.yticks(ticks, units.nanoseconds)


def _draw_allocations(area: Area, allocations: Sequence[int]) -> None:
    steps = range(1, len(allocations) + 1)
    area.bars([(step - 0.25, 0, step + 0.25, count) for step, count in zip(steps, allocations) if count], "faint")
    top = max(allocations)
    ticks = [tick for tick in nice_ticks(top or 1, 2) if tick == int(tick)]
    area.set_ylim(0, max(ticks[-1], 1) * 1.25)
    area.yticks(ticks, units.plain)
    # Only if the figures do not overlap, also on a phone.
    if len(allocations) * len(str(top)) <= 40:
        for step, count in zip(steps, allocations):
            area.text(step, count, units.plain(count), "ink" if count else "muted", offset=(0, 3), ha="center")


def _frame(area: Area, steps: int, warmup: int, heading: str, *, labelled: bool) -> None:
    area.set_xlim(0.5, steps + 0.5)
    if warmup:
        area.axvspan(0.5, min(warmup, steps) + 0.5, "band")
    every = math.ceil(steps / 12)
    ticks = [step for step in range(1, steps + 1) if every == 1 or step == 1 or step % every == 0]
    if labelled:
        area.xticks(ticks, [str(step) for step in ticks])
        area.caption("step", pad=2)
    area.heading(heading, (-70, 14))


def _describe(medians: Sequence[float], allocations: Sequence[int]) -> str:
    words = []
    if len(medians) > 1:
        words.append(
            f"Step 1 takes {units.nanoseconds(medians[0])}, the last step {units.nanoseconds(medians[-1])} (medians)."
        )
    if allocations:
        words.append(f"{allocations[0]} device allocations in step 1, {allocations[-1]} in the last.")
    return " ".join(words)


def _table(
    times: Sequence[Sequence[int]], medians: Sequence[float], allocations: Sequence[int], warmup: int, steps: int
) -> Table:
    rows = []
    for step in range(steps):
        here = [series[step] for series in times if step < len(series)]
        row = [Datum(str(step + 1), sort=step + 1), Datum("warm-up" if step < warmup else "steady")]
        for value in (min(here), medians[step], max(here)) if here else (None, None, None):
            row.append(Datum(units.nanoseconds(value), units.exact(value, "ns"), value))
        count = allocations[step] if step < len(allocations) else None
        row.append(Datum(units.plain(count), sort=count))
        rows.append(row)
    return Table(("step", "part", "fastest", "median", "slowest", "device allocations"), rows)
