"""The figures of a configuration as tables: memory, fragmentation, the heap, out of memory, samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.style import Datum, Table, bytes_datum
from reports.data import glossary, units
from reports.data.devices import simulated

MOMENTS = ("initial", "after_step_1", "warmup_peak", "steady_peak", "overall_peak")
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


def ladder(sample: dict[str, Any]) -> list[LadderRow]:
    rows = []
    previous: dict[str, Any] | None = None
    for rung in _RUNGS:
        moments = sample["memory"][f"{rung}_bytes"] if rung != "process" or not simulated(sample["cell"]) else None
        if moments is None:
            continue
        if previous is not None:
            gaps = [_difference(moments[moment], previous[moment]) for moment in MOMENTS]
            rows.append(LadderRow(_GAPS[rung], True, gaps))
        rows.append(LadderRow(rung, False, [bytes_datum(moments[moment]) for moment in MOMENTS]))
        previous = moments
    return rows


def _difference(upper: int | None, lower: int | None) -> Datum:
    if upper is None or lower is None:
        return Datum(units.DASH)
    text = units.bytes_(upper - lower)
    return Datum(f"+{text}" if upper > lower else text, units.exact(upper - lower, "bytes"))


def ladder_alerts(samples: Sequence[dict[str, Any]]) -> list[str]:
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


def facts(sample: dict[str, Any]) -> list[tuple[str, Datum]]:
    memory = sample["memory"]
    witness = None if simulated(sample["cell"]) else sample["witness"]
    facts = [
        ("lower bound", bytes_datum(memory["lower_bound_bytes"])),
        ("internal fragmentation", _share(memory["internal_fragmentation"])),
        ("external fragmentation", _share(memory["external_fragmentation"])),
        ("utilisation", _share(memory["utilisation"])),
    ]
    if memory["process_baseline_bytes"] is not None and not simulated(sample["cell"]):
        facts.append(("process before device memory", bytes_datum(memory["process_baseline_bytes"])))
    if witness:
        facts += [
            ("library heap, live (counted by a second method)", bytes_datum(witness["heap_live_bytes"])),
            ("library heap, peak (counted by a second method)", bytes_datum(witness["heap_peak_bytes"])),
            (
                "heap allocations per step (counted by a second method)",
                Datum(units.plain(witness["heap_allocations_per_step"]), sort=witness["heap_allocations_per_step"]),
            ),
        ]
    for label, key in (("set-up before step 1", "setup_ns"), ("of it, committing device memory", "device_setup_ns")):
        if sample[key] and not simulated(sample["cell"]):
            facts.append((label, Datum(units.nanoseconds(sample[key]), units.exact(sample[key], "ns"))))
    facts.append(("parameters", Datum(units.plain(sample["parameter_count"]))))
    if sample["flops_per_step"]:
        flops = sample["flops_per_step"]
        facts.append(("work per step", Datum(f"{units.plain(flops / 1e9)} GFLOP", units.exact(flops, "FLOP"))))
    if sample.get("recomputed_ops_per_step"):
        facts.append(("ops recomputed per step", Datum(units.plain(sample["recomputed_ops_per_step"]))))
    if sample["held_out_accuracy"] is not None:
        facts.append(("held-out accuracy", _share(sample["held_out_accuracy"])))
    if sample.get("zero_weight_share") is not None:
        facts.append(("weights that are zero", _share(sample["zero_weight_share"])))
    for name in glossary.metrics():
        if (value := sample.get("figures", {}).get(name)) is not None:
            unit = units.unit_of(name)
            facts.append((glossary.metric(name), Datum(units.value_in(value, unit), units.exact(value, unit), value)))
    if sample["recording_ns_per_event"] is not None:
        cost = sample["recording_ns_per_event"]
        facts.append(("cost of recording", Datum(f"{units.plain(cost)} ns per event", units.exact(cost, "ns"))))
    return facts


def _share(value: float) -> Datum:
    return Datum(units.percent(value), units.exact(value), value)


def oom_facts(report: dict[str, Any]) -> list[tuple[str, Datum]]:
    return [
        ("the request that failed", bytes_datum(report["requested_bytes"])),
        ("capacity", bytes_datum(report["capacity_bytes"])),
        ("reserved then", bytes_datum(report["reserved_bytes"])),
        ("allocated then", bytes_datum(report["allocated_bytes"])),
        ("free inside reserved", bytes_datum(report["free_bytes"])),
        ("largest free hole", bytes_datum(report["largest_free_bytes"])),
    ]


def samples_table(samples: Sequence[dict[str, Any]]) -> Table:
    headers = ("experiment", "variant", "block", "order", "status", "first step", "last step", "samples/s")
    headers += ("reserved, peak", "last loss", "probe before / after", "started", "reason")
    rows = []
    for sample in samples:
        steps = [] if simulated(sample["cell"]) else sample["step_time_ns"]
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
                bytes_datum(reserved),
                Datum(units.plain(loss), units.exact(loss), loss),
                Datum(probe_text, sort=probe["before_gflops"] if probe else None),
                Datum(sample["started"]),
                Datum(sample["reason"] or ""),
            )
        )
    return _without_empty(headers, rows)


def _without_empty(headers: Sequence[str], rows: Sequence[Sequence[Datum]]) -> Table:
    """Removes columns without information: empty ones, and names that are equal in all rows."""
    names = ("experiment", "variant")
    kept = []
    for place, header in enumerate(headers):
        texts = {row[place].text for row in rows}
        if texts <= {"", units.DASH} or (header in names and len(texts) == 1):
            continue
        kept.append(place)
    return Table([headers[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _time(value: int | None) -> Datum:
    return Datum(units.nanoseconds(value), units.exact(value, "ns"), value)
