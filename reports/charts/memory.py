"""Where the bytes were: the whole run, the step of the peak by role, and the split at the peak."""

from __future__ import annotations

import math
from typing import Sequence

import numpy
from reports.charts.area import Area
from reports.charts.palette import ROLES, Look, role_name, role_token
from reports.charts.style import (
    Chart,
    Datum,
    Drawing,
    LegendItem,
    Table,
    bytes_datum,
    colour,
    nice_bytes_ticks,
)
from reports.charts.svg import to_svg
from reports.data import units
from reports.data.trace import Timeline, thin

_NO_TIME = "Across: allocation events in order; nothing is computed, so there is no time."


def timeline_chart(
    chart_id: str,
    timeline: Timeline,
    look: Look,
    *,
    warmup_steps: int,
    steps: int,
    lower_bound: int | None,
    budget: int,
) -> Chart:
    """Requested, allocated and reserved bytes over the whole run, zero-based."""
    title = "Memory over the run"
    drawing = Drawing(280)
    area = Area(drawing, 78, 24, 12, 44)
    xs, by_time = _axis(timeline)
    kept = thin_together((timeline.reserved, timeline.allocated, timeline.requested), budget)
    _shade_steps(area, timeline, xs, warmup_steps, steps)
    area.steps_between(xs[kept], timeline.requested[kept], look.token, alpha=0.22)
    for values, width in ((timeline.allocated, 1), (timeline.reserved, 2.6)):
        area.plot(xs[kept], values[kept], drawstyle="steps-post", color=colour(look.token), linewidth=width)
    top = int(timeline.reserved.max())
    if lower_bound:
        area.axhline(lower_bound, color=colour("muted"), linewidth=1.2, dashes=(4, 3))
        top = max(top, lower_bound)
    bytes_axis(area, top)
    _mark_peak(area, timeline, xs)
    _mark_out_of_memory(area, timeline, xs)
    lines = (("reserved", "line"), ("allocated", "thin"), ("requested", "area"))
    hover = area.hover(
        list(xs[kept]),
        [_moment(timeline, event, steps) for event in kept],
        [{"name": name, "values": _mib(getattr(timeline, name)[kept])} for name, _ in lines],
        "MiB",
    )
    legend = [LegendItem(name, look.token, shape) for name, shape in lines]
    if lower_bound:
        legend.append(LegendItem("lower bound: no allocator can do with less", "muted", "dash"))
    shown = f"{len(kept):,} of {len(xs):,} events are drawn; every peak is kept. " if len(kept) < len(xs) else ""
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, _describe(timeline)),
        _step_table(timeline, steps),
        legend,
        note=shown + ("Across: time." if by_time else _NO_TIME),
        hover=hover,
        alerts=tuple(timeline.broken),
    )


def peak_step_chart(chart_id: str, timeline: Timeline, look: Look, *, budget: int) -> Chart | None:
    """The step in which allocated bytes peaked: live bytes by role, phases shaded."""
    step = int(timeline.step[timeline.peak])
    inside = numpy.flatnonzero(timeline.step == step)
    roles = [role for role in ROLES if role in timeline.by_role and timeline.by_role[role][inside].any()]
    if len(inside) < 4 or not roles:
        return None
    title = f"Step {step}, where the peak lies: what is live, by role" if step else "Set-up, by role"
    drawing = Drawing(280)
    area = Area(drawing, 78, 24, 12, 30)
    xs, by_time = _axis(timeline)
    kept = inside[thin_together((timeline.requested[inside], timeline.reserved[inside]), budget)]
    # Painted from the top of the stack down, so that each area needs only its upper edge.
    stack = numpy.cumsum([timeline.by_role[role][kept] for role in roles], axis=0)
    for role, upper in reversed(list(zip(roles, stack))):
        area.steps_between(xs[kept], upper, role_token(role))
    # This chart is about live bytes; a pool that is many times larger would flatten it.
    reserved, live = int(timeline.reserved[inside].max()), int(timeline.requested[inside].max())
    fits = reserved <= 2 * live
    if fits:
        area.plot(xs[kept], timeline.reserved[kept], drawstyle="steps-post", color=colour(look.token), linewidth=2.6)
    area.set_xlim(xs[inside[0]], xs[inside[-1]])
    bytes_axis(area, reserved if fits else live)
    _shade_phases(area, timeline, xs, inside)
    _mark_peak(area, timeline, xs)
    hover = area.hover(
        list(xs[kept]),
        [_moment(timeline, event) for event in kept],
        [{"name": role_name(role), "values": _mib(timeline.by_role[role][kept])} for role in roles],
        "MiB",
    )
    rows = []
    for phase, events in _stretches(timeline.phase[inside]):
        name = timeline.phases[phase]
        part = inside[events]
        rows.append((Datum(name), *(bytes_datum(int(timeline.by_role[role][part].max())) for role in roles)))
    shown = f"{len(kept):,} of {len(inside):,} events of this step are drawn; every peak is kept. "
    return Chart(
        chart_id,
        title,
        to_svg(drawing, chart_id, title, "Stacked requested bytes by role through " + _phase_words(timeline, inside)),
        Table(("phase, highest in it", *(role_name(role) for role in roles)), rows),
        ([LegendItem("reserved", look.token, "line")] if fits else [])
        + [LegendItem(role_name(role), role_token(role), "block") for role in reversed(roles)],
        note=(shown if len(kept) < len(inside) else "")
        + ("" if fits else f"Reserved memory, {units.bytes_(reserved)}, is above the end of this chart."),
        hover=hover,
    )


def _mib(values: numpy.ndarray) -> list[float]:
    """Values in MiB for the pointer read-out, which prints three digits, so that the page stays small."""
    rounded = (float(f"{value:.3g}") for value in values / 2**20)
    return [int(value) if value.is_integer() else value for value in rounded]


def _axis(timeline: Timeline) -> tuple[numpy.ndarray, bool]:
    if timeline.timed:
        return timeline.time_ns.astype(float), True
    return numpy.arange(len(timeline.time_ns), dtype=float), False


def thin_together(arrays: Sequence[numpy.ndarray], budget: int) -> numpy.ndarray:
    """Extremes of every array. They mostly coincide, so half the budget for each is enough."""
    return numpy.unique(numpy.concatenate([thin(array, budget=budget // 2) for array in arrays]))


def bytes_axis(area: Area, top: int) -> None:
    ticks = nice_bytes_ticks(top)
    area.set_ylim(0, max(ticks[-1], top * 1.14))
    area.yticks(ticks, units.bytes_)


def _stretches(values: numpy.ndarray) -> list[tuple[int, slice]]:
    """The ranges of equal values, in order."""
    edges = [0, *(numpy.flatnonzero(numpy.diff(values)) + 1).tolist(), len(values)]
    return [(int(values[start]), slice(start, end)) for start, end in zip(edges, edges[1:])]


def _shade_steps(area: Area, timeline: Timeline, xs: numpy.ndarray, warmup_steps: int, steps: int) -> None:
    stretches = _stretches(timeline.step)
    starts = [xs[events.start] for _, events in stretches] + [xs[-1]]
    every = math.ceil(len(stretches) / 10)
    ticks = []
    for place, (step, _) in enumerate(stretches):
        start, end = starts[place], starts[place + 1]
        if 1 <= step <= warmup_steps:
            area.axvspan(start, end, "band")
        if place:
            area.axvline(start, color=colour("line"), linewidth=1, zorder=1)
        if 1 <= step <= steps and step % every == 0 and end - start > (xs[-1] - xs[0]) * 0.02:
            ticks.append(((start + end) / 2, str(step)))
    area.set_xlim(xs[0], xs[-1] if xs[-1] > xs[0] else xs[0] + 1)
    area.xticks([x for x, _ in ticks], [label for _, label in ticks])
    area.caption("step (warm-up shaded)" if warmup_steps else "step", pad=2)


def _shade_phases(area: Area, timeline: Timeline, xs: numpy.ndarray, inside: numpy.ndarray) -> None:
    width = xs[inside[-1]] - xs[inside[0]] or 1.0
    for place, (phase, events) in enumerate(_stretches(timeline.phase[inside])):
        start = xs[inside[events.start]]
        end = xs[inside[min(events.stop, len(inside) - 1)]]
        if place:
            area.axvline(start, color=colour("faint"), linewidth=1, dashes=(2, 2))
        if place % 2 == 1:
            area.axvspan(start, end, "band")
        if end - start > width * 0.11:
            area.text((start + end) / 2, 1.03, timeline.phases[phase], "muted", transform=area.by_x, ha="center")


def _mark_peak(area: Area, timeline: Timeline, xs: numpy.ndarray) -> None:
    peak = timeline.peak
    value = int(timeline.allocated[peak])
    low, high = area.get_xlim()
    right_half = xs[peak] > (low + high) / 2
    area.plot(
        [xs[peak]],
        [value],
        marker="o",
        markersize=7,
        color=colour("ink"),
        markerfacecolor=colour("surface"),
        markeredgewidth=1.8,
        clip_on=False,
        zorder=6,
    )
    area.text(
        xs[peak], value, f"peak allocated {units.bytes_(value)}", "ink", offset=(-9 if right_half else 9, 7),
        ha="right" if right_half else "left", halo=True, zorder=7,
    )  # fmt: skip


def _mark_out_of_memory(area: Area, timeline: Timeline, xs: numpy.ndarray) -> None:
    if timeline.failure is None:
        return
    event, requested = timeline.failure.event, timeline.failure.requested
    area.axvline(xs[event], color=colour("alert"), linewidth=1.6, dashes=(4, 2))
    area.text(
        xs[event],
        1.03,
        f"request for {units.bytes_(requested)} fails",
        "alert",
        transform=area.by_x,
        ha="right" if xs[event] > sum(area.get_xlim()) / 2 else "left",
    )


def _moment(timeline: Timeline, event: int, steps: int | None = None) -> str:
    step = int(timeline.step[event])
    if step == 0 or (steps is not None and step > steps):
        return _step_name(step, steps)
    return f"step {step}, {timeline.phases[int(timeline.phase[event])]}"


def _step_name(step: int, steps: int | None) -> str:
    """The name of a step; events outside training steps have names of their own."""
    if step == 0:
        return "set-up"
    return "after the last step" if steps is not None and step > steps else str(step)


def _phase_words(timeline: Timeline, inside: numpy.ndarray) -> str:
    return ", ".join(timeline.phases[phase] for phase, _ in _stretches(timeline.phase[inside])) + "."


def _describe(timeline: Timeline) -> str:
    peak = timeline.peak
    end = " It ran out of memory." if timeline.failure else ""
    return (
        f"Allocated bytes peak at {units.bytes_(int(timeline.allocated[peak]))} in {_moment(timeline, peak)}; "
        f"reserved bytes reach {units.bytes_(int(timeline.reserved.max()))}." + end
    )


def _step_table(timeline: Timeline, steps: int) -> Table:
    rows = []
    for step, events in _stretches(timeline.step):
        rows.append(
            (
                Datum(_step_name(step, steps), sort=step),
                *(
                    bytes_datum(int(array[events].max()))
                    for array in (timeline.requested, timeline.allocated, timeline.reserved)
                ),
            )
        )
    return Table(("step", "requested, highest", "allocated, highest", "reserved, highest"), rows)
