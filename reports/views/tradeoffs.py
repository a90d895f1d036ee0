"""Peak memory against speed, per workload and device: what a strategy saves, and what that costs.

Overlapping intervals are not ranked: a strategy leaves the front only if another takes
no more memory and is certainly faster, or is certainly no slower and takes less. Host memory that
offloading takes instead counts, too.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.palette import AllocatorLooks, SpecText, split_spec
from reports.charts.style import Chart, Datum, Table, bytes_datum
from reports.charts.tradeoff import Strategy, tradeoff_chart
from reports.data import units
from reports.data.axes import differing, strategy_label
from reports.data.devices import simulated
from reports.data.slug import slug
from reports.views.limits import Limits, build_limits
from reports.views.page import Page, Section

PEAK = "reserved_bytes.overall_peak"
SPEED = "throughput_samples_per_s"
TIME = "steady_step_time_ns"
OFFLOADED = "offload_reserved_bytes"
MAXIMUM_GROUPS = 12  # the number of charts; the matrix has the tables of all
GIB = 2**30


@dataclass(frozen=True)
class TradeOff:
    workload: SpecText
    device: SpecText
    chart: Chart
    sentences: Sequence[str]
    table: Table


@dataclass(frozen=True)
class TradeOffs:
    groups: Sequence[TradeOff]
    left_out: int
    limits: Limits

    @property
    def shown(self) -> bool:
        return bool(self.groups or self.limits.largest_batch or self.limits.smallest_device)


def build_tradeoffs(
    samples: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]], looks: AllocatorLooks
) -> TradeOffs:
    groups: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for entry in entries:
        if entry["values"].get(PEAK) is None or not entry["values"].get(SPEED):
            continue
        cell = entry["cell"]
        group = groups.setdefault((cell["workload"], cell["device"], cell["rules"]), {})
        best = group.get(cell["cell_id"])
        if best is None or entry["samples"] > best["samples"]:
            group[cell["cell_id"]] = entry
    first_steps = _first_steps(samples)
    chosen = [list(group.values()) for group in groups.values() if len(group) > 1]
    return TradeOffs(
        [_group(group, first_steps, looks) for group in chosen[:MAXIMUM_GROUPS]],
        max(0, len(chosen) - MAXIMUM_GROUPS),
        build_limits(entries),
    )


def _first_steps(samples: Sequence[dict[str, Any]]) -> dict[str, Datum]:
    """From the start of the process to the end of step 1: the median over samples, and its range."""
    times: dict[str, list[int]] = {}
    for sample in samples:
        if sample["status"] == "ok" and sample["step_time_ns"] and not simulated(sample["cell"]):
            times.setdefault(sample["cell"]["cell_id"], []).append(sample["setup_ns"] + sample["step_time_ns"][0])
    data = {}
    for cell, values in times.items():
        low, high = units.nanoseconds(min(values)), units.nanoseconds(max(values))
        middle = statistics.median(values)
        data[cell] = Datum(units.nanoseconds(middle), f"{low} to {high} in {len(values)} samples", middle)
    return data


def _group(group: Sequence[dict[str, Any]], first_steps: dict[str, Datum], looks: AllocatorLooks) -> TradeOff:
    cells = [entry["cell"] for entry in group]
    varied = differing(cells)
    figures = [_figures(entry) for entry in group]
    strategies = [
        Strategy(
            label=strategy_label(entry["cell"], varied),
            look=looks[entry["cell"]["allocator"]],
            peak=peak,
            speed=speed,
            low=low,
            high=high,
            front=not any(_beats(other, mine) for other in figures),
            first_step=first_steps.get(entry["cell"]["cell_id"], Datum(units.DASH)),
            samples=entry["samples"],
            host=host,
        )
        for entry, mine in zip(group, figures)
        for peak, speed, low, high, host in (mine,)
    ]
    strategies.sort(key=lambda strategy: strategy.peak)
    first = cells[0]
    name = f"{split_spec(first['workload']).name} on {split_spec(first['device']).name}"
    key = "trade-" + slug("|".join((first["workload"], first["device"], first["rules"])) + "|")
    table = _table(strategies)
    return TradeOff(
        workload=split_spec(first["workload"]),
        device=split_spec(first["device"]),
        chart=tradeoff_chart(key, f"Memory against speed: {name}", strategies, table),
        sentences=_sentences(group, varied),
        table=table,
    )


def _figures(entry: dict[str, Any]) -> tuple[float, float, float, float, float]:
    """Peak, speed and the interval of speed, which is infinite if there are too few samples;
    memory of the host."""
    low, high = entry["intervals"].get(SPEED) or (None, None)
    bounds = -math.inf if low is None else low, math.inf if high is None else high
    return entry["values"][PEAK], entry["values"][SPEED], *bounds, entry["values"].get(OFFLOADED, 0)


def _beats(other: tuple[float, ...], mine: tuple[float, ...]) -> bool:
    """Whether one is certainly better: overlapping intervals decide nothing."""
    if other[4] > mine[4]:
        return False
    surely_faster, surely_no_slower = other[2] > mine[3], other[2] >= mine[3]
    takes_less = other[0] < mine[0] or (other[0] == mine[0] and other[4] < mine[4])
    return (other[0] <= mine[0] and surely_faster) or (takes_less and surely_no_slower)


def _sentences(group: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[str]:
    """One point for each strategy that was paired with its baseline, the only comparison of times."""
    by_arm = {(entry["experiment"], entry["arm"]): entry for entry in group}
    sentences = []
    for entry in group:
        baseline = by_arm.get((entry["experiment"], entry["baseline_arm"] or ""))
        comparison = entry["comparisons"].get(TIME)
        if baseline is None or baseline is entry or comparison is None or comparison["theta"] is None:
            continue
        saved = baseline["values"][PEAK] - entry["values"][PEAK]
        names = strategy_label(entry["cell"], varied), strategy_label(baseline["cell"], varied)
        host = entry["values"].get(OFFLOADED, 0) - baseline["values"].get(OFFLOADED, 0)
        sentences.append(_sentence(*names, saved, baseline["values"][PEAK], host, comparison))
    return sentences


def _sentence(name: str, against: str, saved: float, of: float, host: float, comparison: dict[str, Any]) -> str:
    share = units.percent(abs(saved) / of) if of else units.DASH
    if saved == 0:
        memory = f"{name} takes as much memory as {against}"
    else:
        memory = f"{name} takes {units.bytes_(abs(saved))} ({share}) {'less' if saved > 0 else 'more'} than {against}"
    if host:
        memory += f" on the device and {units.bytes_(abs(host))} {'more' if host > 0 else 'less'} of the host"
    bounds = comparison["ci95"]
    if bounds is None or None in bounds or comparison["scale"] != "log_ratio":
        return f"{memory}; how the step times compare is not known."
    low, high = (math.expm1(bound) for bound in bounds)
    effect = math.expm1(comparison["theta"])
    interval = f"95 % interval {units.effect(low)} … {units.effect(high)}"
    if low <= 0 <= high:
        return f"{memory}; this run cannot tell their step times apart ({interval})."
    text = f"{memory}; its steps take {units.percent(abs(effect))} {'longer' if effect > 0 else 'less time'} ({interval})."
    # A few MiB say nothing about a GiB.
    if saved >= GIB / 2 and effect > 0:
        text += f" To save 1 GiB this costs you {units.percent(effect * GIB / saved)} of step time."
    if saved > 0 and effect < 0 and host <= 0:
        text += " Here less memory costs nothing."
    return text


def _table(strategies: Sequence[Strategy]) -> Table:
    headers = (
        "strategy", "peak reserved", "of the host, for offloading", "throughput", "95 % interval",
        "time to the end of step 1", "samples", "front",
    )  # fmt: skip
    rows = [
        (
            Datum(strategy.label),
            bytes_datum(int(strategy.peak)),
            bytes_datum(int(strategy.host)),
            Datum(f"{units.plain(strategy.speed)}{units.NARROW}samples/s", units.exact(strategy.speed), strategy.speed),
            Datum(_interval(strategy)),
            strategy.first_step,
            Datum(str(strategy.samples), sort=strategy.samples),
            Datum("nothing surely beats it" if strategy.front else "beaten"),
        )
        for strategy in strategies
    ]
    return Table(headers, rows)


def _interval(strategy: Strategy) -> str:
    if not strategy.bounded:
        return "too few samples"
    return f"{units.plain(strategy.low)} … {units.plain(strategy.high)}"


def _of_page(page: Page) -> TradeOffs | None:
    tradeoffs = build_tradeoffs(page.measured, page.entries, page.looks)
    return tradeoffs if tradeoffs.shown else None


SECTION = Section("tradeoffs", "Trade-offs", "what less memory costs in speed", 40, _of_page, charts=True)
