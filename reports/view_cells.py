"""Everything recorded about each cell: charts, ladder, fragmentation, samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from reports import chart_memory, chart_steps, trace, units
from reports.chart_style import Chart, Datum, Table
from reports.palette import AllocatorLooks, Look, SpecText, split_spec
from reports.slug import slug

MOMENTS = ("initial", "after_step_1", "warmup_peak", "steady_peak", "overall_peak")
MAXIMUM_CHARTED_CELLS = 60  # the page must stay a few MB
_POINTS_IN_ALL = 32_000
_RUNGS = ("requested", "allocated", "reserved", "process")
_GAPS = {
    "allocated": "rounding inside blocks",
    "reserved": "idle cache and holes",
    "process": "beside the allocator: libraries, code, heap",
}


@dataclass(frozen=True)
class LadderRow:
    name: str
    gap: bool
    values: Sequence[Datum]


@dataclass(frozen=True)
class CellView:
    anchor: str
    cell: dict[str, Any]
    workload: SpecText
    device: SpecText
    allocator: SpecText
    look: Look
    statuses: Sequence[tuple[str, int]]
    status: str  # the worst one
    reason: str
    peak_reserved: Datum
    step_time: Datum
    throughput: Datum
    charts: Sequence[Chart]
    ladder: Sequence[LadderRow]
    facts: Sequence[tuple[str, Datum]]
    largest: Table | None
    oom: Sequence[tuple[str, Datum]]
    samples: Table
    notes: Sequence[str] = field(default_factory=tuple)
    alerts: Sequence[str] = field(default_factory=tuple)
    lowering_rules: str = ""
    used_in: Sequence[str] = field(default_factory=tuple)


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
    traced = sum(1 for group in by_cell.values() if _traced(group))
    budget = max(160, min(600, _POINTS_IN_ALL // max(traced, 1)))
    # Where charts must be rationed, measured cells come before simulated ones.
    ranked = sorted(by_cell, key=lambda cell_id: cells[cell_id]["device_class"] == "meta")
    drawn = set(ranked[:MAXIMUM_CHARTED_CELLS])
    return [
        _cell(
            directory,
            cell,
            by_cell.get(cell_id, []),
            entries.get(cell_id),
            looks,
            budget if cell_id in drawn or cell_id not in by_cell else 0,
        )
        for cell_id, cell in cells.items()
    ]


def _traced(samples: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return next((sample for sample in samples if sample["trace_file"]), None)


def _cell(
    directory: Path,
    cell: dict[str, Any],
    samples: Sequence[dict[str, Any]],
    entry: dict[str, Any] | None,
    looks: AllocatorLooks,
    budget: int,
) -> CellView:
    anchor = "cell-" + slug(cell["cell_id"])
    look = looks[cell["allocator"]]
    shown = next((sample for sample in samples if sample["memory"]), None)
    notes: list[str] = []
    charts, largest = _charts(directory, anchor, samples, look, budget, notes)
    alerts = [text for chart in charts for text in chart.alerts] + _ladder_alerts(samples)
    statuses = Counter(sample["status"] for sample in samples)
    if not statuses and entry:
        statuses[entry["status"].replace("_", " ")] = 0
    order = ("crash", "timeout", "oom", "invalid", "unsupported", "ok")
    ranked = sorted(statuses.items(), key=lambda item: order.index(item[0]) if item[0] in order else -1)
    if shown is not None and len(samples) > 1:
        notes.append(f"Ladder and split are those of block {shown['block']}, arm {shown['arm']}.")
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
        throughput=_judged(entry, "throughput_samples_per_s", "samples/s"),
        charts=charts,
        ladder=_ladder(shown) if shown else (),
        facts=_facts(shown) if shown else (),
        largest=largest,
        oom=_oom(samples),
        samples=_samples_table(samples),
        notes=notes,
        alerts=alerts,
        lowering_rules=next((s["lowering_rules"] for s in samples if s["lowering_rules"]), ""),
        used_in=list(dict.fromkeys(sample["experiment"] for sample in samples)),
    )


def _judged(entry: dict[str, Any] | None, metric: str, unit: str) -> Datum:
    value = entry["values"].get(metric) if entry else None
    return Datum(units.value_in(value, unit), units.exact(value, unit), value)


def _charts(
    directory: Path, anchor: str, samples: Sequence[dict[str, Any]], look: Look, budget: int, notes: list[str]
) -> tuple[list[Chart], Table | None]:
    if budget == 0:
        notes.append(f"This page has charts for {MAXIMUM_CHARTED_CELLS} cells, measured ones first; this is not among them.")
        return [], None
    charts: list[Chart | None] = []
    largest = None
    sample = _traced(samples)
    if sample is not None:
        try:
            timeline = trace.load(directory, sample["trace_file"])
        except trace.TraceError as error:
            notes.append(f"No memory timeline: {error}.")
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
            largest = _largest(timeline)
            notes.append(f"Timeline recorded in block {sample['block']}, arm {sample['arm']}.")
    charts.append(chart_steps.steps_chart(f"{anchor}-steps", samples, look))
    with_memory = next((sample for sample in samples if sample["memory"]), None)
    if with_memory:
        charts.append(
            chart_memory.roles_chart(f"{anchor}-roles", with_memory["memory"]["requested_bytes_by_role_at_peak"])
        )
    return [chart for chart in charts if chart is not None], largest


def _largest(timeline: trace.Timeline) -> Table:
    rows = [
        (Datum(op), Datum(role.replace("_", " ")), Datum(units.bytes_(size), units.exact(size, "bytes"), size))
        for op, role, size in timeline.live_at_peak[:10]
    ]
    return Table(("made by", "role", "requested"), rows)


def _simulated(sample: dict[str, Any]) -> bool:
    """On meta, process memory, heap and times are those of the simulation, not of training."""
    return bool(sample["cell"]["device_class"] == "meta")


def _ladder(sample: dict[str, Any]) -> list[LadderRow]:
    rows = []
    previous: dict[str, Any] | None = None
    for rung in _RUNGS:
        moments = sample["memory"][f"{rung}_bytes"] if rung != "process" or not _simulated(sample) else None
        if moments is None:
            continue
        if previous is not None:
            gaps = [_difference(moments[moment], previous[moment]) for moment in MOMENTS]
            rows.append(LadderRow(_GAPS[rung], True, gaps))
        rows.append(LadderRow(rung, False, [_bytes(moments[moment]) for moment in MOMENTS]))
        previous = moments
    return rows


def _bytes(value: int | None) -> Datum:
    return Datum(units.bytes_(value), units.exact(value, "bytes"), value)


def _difference(upper: int | None, lower: int | None) -> Datum:
    if upper is None or lower is None:
        return Datum(units.DASH)
    text = units.bytes_(upper - lower)
    return Datum(f"+{text}" if upper > lower else text, units.exact(upper - lower, "bytes"))


def _ladder_alerts(samples: Sequence[dict[str, Any]]) -> list[str]:
    """requested ≤ allocated ≤ reserved, at every moment of every sample."""
    alerts = []
    for sample in samples:
        if not sample["memory"]:
            continue
        for lower, upper in (("requested", "allocated"), ("allocated", "reserved")):
            for moment in MOMENTS:
                below, above = sample["memory"][f"{lower}_bytes"][moment], sample["memory"][f"{upper}_bytes"][moment]
                if below is not None and above is not None and below > above:
                    alerts.append(
                        f"block {sample['block']}, {moment.replace('_', ' ')}: {lower} ({below:,} bytes) "
                        f"exceeds {upper} ({above:,} bytes)"
                    )
    return alerts[:5]


def _facts(sample: dict[str, Any]) -> list[tuple[str, Datum]]:
    memory = sample["memory"]
    witness = None if _simulated(sample) else sample["witness"]
    facts = [
        ("lower bound", _bytes(memory["lower_bound_bytes"])),
        ("internal fragmentation", _share(memory["internal_fragmentation"])),
        ("external fragmentation", _share(memory["external_fragmentation"])),
        ("utilisation", _share(memory["utilisation"])),
    ]
    if memory["process_baseline_bytes"] is not None and not _simulated(sample):
        facts.append(("process before device memory", _bytes(memory["process_baseline_bytes"])))
    if witness:
        facts += [
            ("library heap, live (witness)", _bytes(witness["heap_live_bytes"])),
            ("library heap, peak (witness)", _bytes(witness["heap_peak_bytes"])),
            (
                "heap allocations per step (witness)",
                Datum(units.plain(witness["heap_allocations_per_step"]), sort=witness["heap_allocations_per_step"]),
            ),
        ]
    for label, key in (("set-up before step 1", "setup_ns"), ("of it, committing device memory", "device_setup_ns")):
        if sample[key] and not _simulated(sample):
            facts.append((label, Datum(units.nanoseconds(sample[key]), units.exact(sample[key], "ns"))))
    facts.append(("parameters", Datum(units.plain(sample["parameter_count"]))))
    if sample["flops_per_step"]:
        flops = sample["flops_per_step"]
        facts.append(("work per step", Datum(f"{units.plain(flops / 1e9)} GFLOP", units.exact(flops, "FLOP"))))
    if sample["held_out_accuracy"] is not None:
        facts.append(("held-out accuracy", _share(sample["held_out_accuracy"])))
    if sample["recording_ns_per_event"] is not None:
        cost = sample["recording_ns_per_event"]
        facts.append(("cost of recording", Datum(f"{units.plain(cost)} ns per event", units.exact(cost, "ns"))))
    return facts


def _share(value: float) -> Datum:
    return Datum(units.percent(value), units.exact(value), value)


def _oom(samples: Sequence[dict[str, Any]]) -> list[tuple[str, Datum]]:
    report = next((sample["oom"] for sample in samples if sample["oom"]), None)
    if report is None:
        return []
    return [
        ("the request that failed", _bytes(report["requested_bytes"])),
        ("capacity", _bytes(report["capacity_bytes"])),
        ("reserved then", _bytes(report["reserved_bytes"])),
        ("allocated then", _bytes(report["allocated_bytes"])),
        ("free inside reserved", _bytes(report["free_bytes"])),
        ("largest free hole", _bytes(report["largest_free_bytes"])),
    ]


def _samples_table(samples: Sequence[dict[str, Any]]) -> Table:
    headers = ("experiment", "arm", "block", "order", "status", "first step", "last step", "samples/s")
    headers += ("reserved, peak", "last loss", "probe before / after", "started", "reason")
    rows = []
    for sample in samples:
        steps = [] if _simulated(sample) else sample["step_time_ns"]
        probe = sample["probe"]
        probe_text = units.DASH
        if probe:
            probe_text = f"{units.plain(probe['before_gflops'])} / {units.plain(probe['after_gflops'])} GFLOP/s"
        reserved = sample["memory"]["reserved_bytes"]["overall_peak"] if sample["memory"] else None
        rate = sample["throughput_samples_per_s"]
        loss = sample["loss"][-1] if sample["loss"] else None
        rows.append(
            (
                Datum(sample["experiment"]),
                Datum(sample["arm"]),
                Datum(str(sample["block"]), sort=sample["block"]),
                Datum(str(sample["order_index"]), sort=sample["order_index"]),
                Datum(sample["status"]),
                _time(steps[0] if steps else None),
                _time(steps[-1] if steps else None),
                Datum(units.plain(rate), units.exact(rate), rate),
                _bytes(reserved),
                Datum(units.plain(loss), units.exact(loss), loss),
                Datum(probe_text, sort=probe["before_gflops"] if probe else None),
                Datum(sample["started"]),
                Datum(sample["reason"] or ""),
            )
        )
    return Table(headers, rows)


def _time(value: int | None) -> Datum:
    return Datum(units.nanoseconds(value), units.exact(value, "ns"), value)
