"""Everything recorded about each configuration: charts, memory, fragmentation, samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from reports.charts import memory as chart_memory, steps as chart_steps
from reports.charts.palette import AllocatorLooks, Look, SpecText, split_spec
from reports.charts.roles import roles_chart
from reports.charts.segments import segments_chart
from reports.charts.sizes import sizes_chart
from reports.charts.style import Chart, Datum, Table
from reports.data import trace, units
from reports.data.axes import axes_of, axis_name
from reports.data.devices import simulated
from reports.data.slug import slug
from reports.data.spread import spread
from reports.views.cell_tables import LadderRow, facts, ladder, ladder_alerts, oom_facts, samples_table
from reports.views.page import Page, Section

# The page must stay below 3 MB, whatever the run.
_MANY_CELLS = 200
_CHARTED = (40, 10)  # configurations with charts: in a small run, in a large one
_DETAILED = (120, 30)  # configurations with tables of memory and samples; others have a line
_POINTS_IN_ALL = (16_000, 2_500)
MOST_LISTED = 50  # shown until a reader asks for all
_SHOWN = ("allocator", "rules")  # the device determines the rules
MAXIMUM_OPS = 10  # ops that made the live values at the peak


@dataclass(frozen=True)
class CellView:
    anchor: str
    cell: dict[str, Any]
    workload: SpecText
    device: SpecText
    allocator: SpecText
    look: Look
    statuses: Sequence[tuple[str, int]]
    status: str  # the worst status
    reason: str
    peak_reserved: Datum
    step_time: Datum
    axes: str  # axes in which it differs from most configurations, except those that the list shows in columns
    peaks: str  # a sentence in place of the table of memory
    charts: Sequence[Chart]
    ladder: Sequence[LadderRow]
    facts: Sequence[tuple[str, Datum]]
    largest: Table | None
    oom: Sequence[tuple[str, Datum]]
    samples: Table | None
    notes: Sequence[str] = field(default_factory=tuple)
    alerts: Sequence[str] = field(default_factory=tuple)
    slow_steps: Sequence[str] = field(default_factory=tuple)  # set if rare slow steps make the mean differ
    lowering_rules: str = ""
    used_in: Sequence[str] = field(default_factory=tuple)  # experiment [arm], as the history names it


def build_cells(
    directory: Path, samples: Sequence[dict[str, Any]], matrix: Sequence[dict[str, Any]], looks: AllocatorLooks
) -> list[CellView]:
    cells: dict[str, dict[str, Any]] = {}
    by_cell: dict[str, list[dict[str, Any]]] = {}
    entries: dict[str, dict[str, Any]] = {}
    for entry in matrix:
        cell_id = entry["cell"]["cell_id"]
        cells.setdefault(cell_id, entry["cell"])
        if cell_id not in entries or entry["samples"] > entries[cell_id]["samples"]:
            entries[cell_id] = entry
    for sample in samples:
        cells.setdefault(sample["cell"]["cell_id"], sample["cell"])
        by_cell.setdefault(sample["cell"]["cell_id"], []).append(sample)
    many = len(cells) > _MANY_CELLS
    charted, detailed, points = (limits[many] for limits in (_CHARTED, _DETAILED, _POINTS_IN_ALL))
    traced = sum(1 for group in by_cell.values() if _traced(group))
    budget = max(160, min(600, points // max(min(traced, charted), 1)))
    # If there are too many charts, measured configurations come before simulated ones.
    ranked = sorted(by_cell, key=lambda cell_id: simulated(cells[cell_id]))
    usual = usual_choices(list(cells.values()))
    drawn, told = set(ranked[:charted]), set(ranked[:detailed])

    def view_of(cell_id: str) -> CellView:
        return _cell(
            directory,
            cells[cell_id],
            by_cell.get(cell_id, []),
            entries.get(cell_id),
            looks,
            budget if cell_id in drawn or cell_id not in by_cell else 0,
            usual,
            detailed=cell_id in told,
        )

    slow = [cell_id for cell_id in cells if cell_id in drawn]
    views = dict(zip(slow, spread(view_of, slow)))
    return [views.get(cell_id) or view_of(cell_id) for cell_id in cells]


def _traced(samples: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return next((sample for sample in samples if sample["trace_file"]), None)


def _cell(
    directory: Path,
    cell: dict[str, Any],
    samples: Sequence[dict[str, Any]],
    entry: dict[str, Any] | None,
    looks: AllocatorLooks,
    budget: int,
    usual: dict[str, str],
    *,
    detailed: bool,
) -> CellView:
    anchor = "cell-" + slug(cell["cell_id"])
    axes = axes_of(cell)
    look = looks[cell["allocator"]]
    shown = next((sample for sample in samples if sample["memory"]), None)
    notes: list[str] = []
    charts, largest = _charts(directory, anchor, samples, look, budget, notes)
    alerts = [text for chart in charts for text in chart.alerts] + ladder_alerts(samples)
    statuses = Counter(sample["status"] for sample in samples)
    if not statuses and entry:
        statuses[entry["status"].replace("_", " ")] = 0
    order = ("crash", "timeout", "oom", "invalid", "unsupported", "ok")
    ranked = sorted(statuses.items(), key=lambda item: order.index(item[0]) if item[0] in order else -1)
    if not detailed:
        notes = []
    elif shown is not None and len(samples) > 1:
        notes.append(f"The table of memory is that of block {shown['block']}, variant {shown['arm']}.")
    return CellView(
        anchor=anchor,
        cell=cell,
        workload=split_spec(cell["workload"]),
        device=split_spec(cell["device"]),
        allocator=split_spec(cell["allocator"]),
        look=look,
        statuses=ranked,
        status=ranked[0][0] if ranked else "unsupported",
        reason=next((s["reason"] for s in samples if s["reason"]), (entry or {}).get("reason") or ""),
        peak_reserved=_judged(entry, "reserved_bytes.overall_peak", "bytes"),
        step_time=_judged(entry, "steady_step_time_ns", "ns"),
        axes=", ".join(f"{axis_name(axis)} {axes.get(axis, 'none')}" for axis in usual
                       if axes.get(axis, "none") != usual[axis]),
        peaks=_peaks(entry),
        charts=charts,
        ladder=ladder(shown) if shown and detailed else (),
        facts=facts(shown) if shown and detailed else (),
        largest=largest,
        oom=next((oom_facts(sample["oom"]) for sample in samples if sample["oom"]), ()),
        samples=samples_table(samples) if detailed else None,
        notes=notes,
        alerts=alerts,
        slow_steps=_tails(entry),
        lowering_rules=next((s["lowering_rules"] for s in samples if s["lowering_rules"]), ""),
        used_in=list(dict.fromkeys(f"{sample['experiment']} [{sample['arm']}]" for sample in samples)),
    )


def _tails(entry: dict[str, Any] | None) -> list[str]:
    """Says where the mean step time differs from the median, on which verdicts rest."""
    tails = [comparison.get("tail") for comparison in ((entry or {}).get("comparisons") or {}).values()]
    return [tail["why"] for tail in tails if tail and tail["why"]]


def usual_choices(cells: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The usual value of each axis, which no line of the list repeats."""
    counts: dict[str, Counter[str]] = {}
    for cell in cells:
        for axis, value in axes_of(cell).items():
            if axis not in _SHOWN:
                counts.setdefault(axis, Counter())[value] += 1
    return {axis: count.most_common(1)[0][0] for axis, count in counts.items()}


def _peaks(entry: dict[str, Any] | None) -> str:
    """ "At its peak 1.50 GiB requested, 1.52 GiB allocated, …"; unknown values are left out."""
    values = entry["values"] if entry else {}
    rungs = [(rung, values.get(f"{rung}_bytes.overall_peak")) for rung in ("requested", "allocated", "reserved")]
    words = ", ".join(f"{units.bytes_(value)} {rung}" for rung, value in rungs if value is not None)
    if not words:
        return ""
    speed = values.get("throughput_samples_per_s")
    return f"At the peak {words}" + (f"; {units.plain(speed)} samples/s." if speed is not None else ".")


def _judged(entry: dict[str, Any] | None, metric: str, unit: str) -> Datum:
    value = entry["values"].get(metric) if entry else None
    return Datum(units.value_in(value, unit), units.exact(value, unit), value)


def _charts(
    directory: Path, anchor: str, samples: Sequence[dict[str, Any]], look: Look, budget: int, notes: list[str]
) -> tuple[list[Chart], Table | None]:
    if budget == 0:
        return [], None
    charts: list[Chart | None] = []
    largest = None
    sample = _traced(samples)
    if sample is not None:
        try:
            timeline = trace.load(directory, sample["trace_file"])
        except trace.TraceError as error:
            notes.append(f"There is no memory timeline: {error}.")
        else:
            bound = sample["memory"]["lower_bound_bytes"] if sample["memory"] else None
            charts.append(
                chart_memory.timeline_chart(
                    f"{anchor}-time",
                    timeline,
                    look,
                    warmup_steps=sample["warmup_steps"],
                    steps=sample["warmup_steps"] + sample["measured_steps"],
                    lower_bound=bound,
                    budget=budget,
                )
            )
            charts.append(chart_memory.peak_step_chart(f"{anchor}-peak", timeline, look, budget=budget))
            if timeline.layout is not None:
                charts.append(segments_chart(f"{anchor}-map", timeline.layout, budget=budget))
                charts.append(sizes_chart(f"{anchor}-sizes", timeline.layout, look))
            largest = _largest(timeline)
            notes.append(f"The timeline was recorded in block {sample['block']}, variant {sample['arm']}.")
    charts.append(chart_steps.steps_chart(f"{anchor}-steps", samples, look))
    with_memory = next((sample for sample in samples if sample["memory"]), None)
    if with_memory:
        charts.append(
            roles_chart(f"{anchor}-roles", with_memory["memory"]["requested_bytes_by_role_at_peak"])
        )
    return [chart for chart in charts if chart is not None], largest


def _largest(timeline: trace.Timeline) -> Table:
    rows = [
        (Datum(op), Datum(role.replace("_", " ")), Datum(units.bytes_(size), units.exact(size, "bytes"), size))
        for op, role, size in timeline.live_at_peak[:MAXIMUM_OPS]
    ]
    rest = timeline.live_at_peak[MAXIMUM_OPS:]
    if rest:
        left = sum(size for _, _, size in rest)
        rows.append((Datum(f"{len(rest):,} more"), Datum(""), Datum(units.bytes_(left), units.exact(left, "bytes"), left)))
    return Table(("made by", "role", "requested"), rows)


@dataclass(frozen=True)
class Cells:
    views: Sequence[CellView]
    usual: Sequence[tuple[str, str]]  # axis, its usual value
    listed: int  # shown at first

    @property
    def alerts(self) -> int:
        """The number of configurations whose bytes contradict each other."""
        return sum(1 for view in self.views if view.alerts)


def _of_page(page: Page) -> Cells | None:
    views = build_cells(page.data.directory, page.measured, page.matrix, page.looks)
    usual = usual_choices([view.cell for view in views])
    return Cells(views, [item for item in usual.items() if item[1] != "none"], MOST_LISTED) if views else None


SECTION = Section(
    address="cells",
    title="Configurations",
    about="everything recorded about each configuration",
    place=60,
    build=_of_page,
    count=lambda cells: len(cells.views),
    charts=True,
)
