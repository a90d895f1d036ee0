"""Memory of a watched process tree over time, and of its largest processes."""

from __future__ import annotations

from typing import Any

import numpy

from reports.charts.area import Area
from reports.charts.memory import bytes_axis, thin_together
from reports.charts.style import (
    Chart,
    Datum,
    Drawing,
    LegendItem,
    Table,
    bytes_datum,
    colour,
)
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.watch import WatchData

_BUDGET = 1200  # points drawn
_MOST_LINES = 6
_TABLE_ROWS = 60


def tree_chart(data: WatchData) -> Chart:
    """PSS, RSS and GPU memory of all processes together, zero-based."""
    times = numpy.array([sample["time_s"] for sample in data.samples])
    series = [("RSS", "a1", _values(data, "resident_bytes"))]
    for name, token, field in (
        ("PSS", "a0", "proportional_bytes"),
        ("GPU memory of the tree", "a2", "gpu_tree_bytes"),
        ("GPU memory of the devices", "a3", "gpu_used_bytes"),
    ):
        if any(sample[field] is not None for sample in data.samples):
            series.append((name, token, _values(data, field)))
    return _lines("watch-tree", "Memory of the process tree", times, series, data.watch["budget_bytes"])


def processes_chart(data: WatchData) -> Chart | None:
    """RSS of the processes that held most, where there is more than one."""
    held: dict[tuple[int, str], int] = {}
    for sample in data.samples:
        for process in sample["processes"]:
            key = (process["pid"], process["command"])
            held[key] = max(held.get(key, 0), process["resident_bytes"])
    if len(held) < 2:
        return None
    times = numpy.array([sample["time_s"] for sample in data.samples])
    series = []
    for place, (pid, command) in enumerate(sorted(held, key=lambda key: (-held[key], key))[:_MOST_LINES]):
        values = [
            next((p["resident_bytes"] for p in sample["processes"] if (p["pid"], p["command"]) == (pid, command)), None)
            for sample in data.samples
        ]
        series.append((f"{pid} {command}", f"a{place}", numpy.array(values, dtype=float)))
    title = "RSS of its processes" + (f": the {_MOST_LINES} largest of {len(held)}" if len(held) > _MOST_LINES else "")
    return _lines("watch-processes", title, times, series, None)


def _values(data: WatchData, field: str) -> numpy.ndarray:
    return numpy.array([sample[field] for sample in data.samples], dtype=float)  # None becomes NaN


def _lines(
    chart_id: str, title: str, times: numpy.ndarray, series: list[tuple[str, str, Any]], budget: int | None
) -> Chart:
    drawing = Drawing(280)
    area = Area(drawing, 78, 24, 12, 44)
    filled = [(name, token, values, _carried(values)) for name, token, values in series]
    kept = thin_together([carried for *_, carried in filled], _BUDGET)
    for _, token, values, _ in filled:
        known = ~numpy.isnan(values)
        # A single sample is drawn as a line, too: it holds until the next.
        places = kept[known[kept]]
        area.plot(times[places], values[places], color=colour(token), linewidth=1.8, drawstyle="steps-post")
    top = int(max(carried.max() for *_, carried in filled))
    legend = [LegendItem(name, token) for name, token, *_ in filled]
    if budget is not None:
        area.axhline(budget, color=colour("alert"), linewidth=1.4, dashes=(4, 3))
        legend.append(LegendItem("budget", "alert", "dash"))
        top = max(top, budget)
    bytes_axis(area, top)
    area.set_xlim(0, max(float(times[-1]), 1e-3))
    seconds = [place for place in area.round_places(across=True) if 0 <= place <= times[-1]]
    area.xticks(seconds, [units.plain(place) for place in seconds])
    area.caption("seconds since watching began", pad=9)
    hover = area.hover(
        [float(time) for time in times[kept]],
        [f"{units.plain(float(time))} s" for time in times[kept]],
        [
            {"name": name, "values": [float(f"{value:.3g}") for value in carried[kept] / 2**20]}
            for name, _, _, carried in filled
        ],
        "MiB",
    )
    peaks = ", ".join(f"{name} at most {units.bytes_(carried.max())}" for name, _, _, carried in filled)
    shown = f"{len(kept):,} of {len(times):,} samples are drawn; every peak is kept. " if len(kept) < len(times) else ""
    rows = [
        (Datum(f"{units.plain(float(times[i]))} s", sort=float(times[i])), *(_cell(v[i]) for _, _, v, _ in filled))
        for i in _spread(len(times))
    ]
    more = f"The table has {len(rows)} of the {len(times)} samples in timeline.jsonl." if len(rows) < len(times) else ""
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, f"Over {units.plain(float(times[-1]))} s: {peaks}."),
        Table(("time", *(name for name, *_ in filled)), rows),
        legend,
        note=f"These figures were polled: a peak between two samples is missed. {shown}{more}".strip(),
        hover=hover,
    )


def _carried(values: numpy.ndarray) -> numpy.ndarray:
    """Replaces unknown values by the last known one; 0 before the first."""
    known = numpy.where(numpy.isnan(values), -1, numpy.arange(len(values)))
    last = numpy.maximum.accumulate(known)
    return numpy.where(last < 0, 0.0, values[numpy.maximum(last, 0)])


def _cell(value: float) -> Datum:
    return Datum(units.DASH) if numpy.isnan(value) else bytes_datum(int(value))


def _spread(count: int) -> list[int]:
    return sorted(set(numpy.linspace(0, count - 1, min(count, _TABLE_ROWS)).astype(int).tolist()))
