"""Memory of a program on a virtual GPU, by role, over its allocation events."""

from __future__ import annotations

from typing import Any

import numpy

from reports.charts.area import Area
from reports.charts.memory import bytes_axis
from reports.charts.palette import role_token
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

# The roles that the framework's hook reports; those that stay across steps come first.
_ROLES = {
    "weights": "weight",
    "optimizer state": "optimizer_state",
    "gradients": "gradient",
    "gathered weights": "result",
    "buffers": "statistic",
    "gradient buckets": "result",  # of another way of training than gathered weights
    "activations": "activation",
    "temporaries": "activation_gradient",
    "workspaces": "workspace",
    "batch and other": "input",
}
_TABLE_ROWS = 60


def _mark_peak(area: Area, x: float, peak: float, top: int, side: str) -> None:
    area.plot([x], [peak], marker="o", markersize=6, color=colour("ink"))
    area.text(x, peak + top * 0.03, f" peak {units.bytes_(peak)} ", "ink", ha=side, halo=True)


def device_chart(chart_id: str, curve: dict[str, Any], capacity: int | None) -> Chart:
    """Allocated bytes by role, stacked, under the reserved bytes if there are any. The capacity, if it is known, is
    drawn unless it is far above them."""
    xs = numpy.array(curve["positions"], dtype=float)
    reserved = numpy.array(curve["reserved"], dtype=float)
    roles = [role for role in (*_ROLES, *sorted(set(curve["roles"]) - set(_ROLES))) if any(curve["roles"].get(role, ()))]
    values = [numpy.array(curve["roles"][role], dtype=float) for role in roles]
    stack = numpy.cumsum(values, axis=0) if values else numpy.zeros((1, len(xs)))
    drawing = Drawing(300)
    area = Area(drawing, 78, 24, 12, 44)
    for role, upper in reversed(list(zip(roles, stack))):
        area.steps_between(xs, upper, _token(role))
    pooled = bool(reserved.any())
    if pooled:
        area.plot(xs, reserved, drawstyle="steps-post", color=colour("ink"), linewidth=1.6)
    top = int(max(reserved.max(), stack[-1].max()))
    legend = [LegendItem("reserved", "ink")] * pooled + [LegendItem(role, _token(role), "block") for role in reversed(roles)]
    note = ""
    if capacity is None:
        pass
    elif capacity <= 2 * top:
        area.axhline(capacity, color=colour("alert"), linewidth=1.4, dashes=(4, 3))
        legend.append(LegendItem("capacity", "alert", "dash"))
        top = max(top, capacity)
    else:
        note = f"The capacity, {units.bytes_(capacity)}, is above the end of this chart. "
    bytes_axis(area, top)
    area.set_xlim(0, max(curve["events"], 1))
    for end in curve["steps"]:
        area.axvline(end, color=colour("line"), linewidth=1, zorder=1)
    ends = curve["steps"][:10]
    area.xticks(ends, [str(step) for step in range(1, len(ends) + 1)])
    area.caption("end of optimizer step" if ends else "allocation events", pad=9)
    at = int(numpy.searchsorted(xs, curve["peak"]))
    peak = float(stack[-1][at])
    _mark_peak(area, xs[at], peak, top, "right" if xs[at] > curve["events"] / 2 else "left")
    series = [("reserved", reserved)] * pooled + list(zip(roles, values))
    hover = area.hover(
        list(xs),
        [f"event {int(x):,}" for x in xs],
        [{"name": name, "values": [float(f"{v:.3g}") for v in held / 2**20]} for name, held in series],
        "MiB",
    )
    rows = [
        (Datum(f"{int(xs[i]):,}", sort=xs[i]), *(bytes_datum(int(held[i])) for _, held in series))
        for i in sorted({*numpy.linspace(0, len(xs) - 1, min(len(xs), _TABLE_ROWS)).astype(int).tolist(), at})
    ]
    drawn = f"{len(xs):,} of {curve['events']:,} events are drawn; every peak is kept. " if len(xs) < curve["events"] else ""
    title = "Memory over the run, by role"
    description = f"Allocated bytes peak at {units.bytes_(peak)}"
    description += f", reserved bytes at {units.bytes_(float(reserved.max()))}." if pooled else "."
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, description),
        Table(("event", *(name for name, _ in series)), rows),
        legend,
        note=f"{note}{drawn}Across: allocation events in order, not time.",
        hover=hover,
    )


def _token(role: str) -> str:
    return role_token(_ROLES.get(role, "result"))
