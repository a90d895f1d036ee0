"""Memory that a training process leaves for a second one: capacity less reserved, over time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

from reports.charts.left import Left, left_chart
from reports.charts.palette import AllocatorLooks, readable, split_spec
from reports.charts.style import Chart, Datum, Table, bytes_datum
from reports.data import trace, units
from reports.data.axes import axes_of
from reports.data.devices import simulated
from reports.data.slug import slug
from reports.views.page import Page, Section

MAXIMUM_GROUPS = 6
MAXIMUM_CURVES = 8


@dataclass(frozen=True)
class LeftGroup:
    simulated: bool
    sentence: str
    chart: Chart


@dataclass(frozen=True)
class LeftOver:
    groups: Sequence[LeftGroup]
    note: str


def build_left(directory: Path, samples: Sequence[dict[str, Any]], looks: AllocatorLooks) -> LeftOver:
    """One chart for each workload and device on which strategies leave different amounts."""
    problems: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for sample in samples:
        if sample["status"] == "ok" and sample["trace_file"] and sample["memory"]:
            cell = sample["cell"]
            # Allocators are compared with each other; everything else is equal.
            others = (value for axis, value in axes_of(cell).items() if axis != "allocator")
            problem = (sample["experiment"], cell["workload"], cell["device"], *others)
            problems.setdefault(problem, {})[cell["allocator"]] = sample
    unlike = [
        list(cells.values())
        for cells in problems.values()
        if len({_course(sample) for sample in cells.values()}) > 1
    ]
    # A sweep over batches is shown by its middle batch.
    sweeps: dict[tuple[str, str], list[list[dict[str, Any]]]] = {}
    for group in unlike:
        cell = group[0]["cell"]
        sweeps.setdefault((split_spec(cell["workload"]).name, cell["device"]), []).append(group)
    chosen = [_middle(groups) for groups in sweeps.values()]
    # Charts with the most strategies come first, and real cards before the small devices of tests.
    chosen.sort(key=lambda group: (-len({_course(sample) for sample in group}), -_most(group)))
    groups = [group for samples_ in chosen[:MAXIMUM_GROUPS] if (group := _group(directory, samples_, looks))]
    note = f"{len(groups)} of {len(unlike)} workloads and devices are shown." if len(unlike) > len(groups) else ""
    return LeftOver(groups, note)


def _most(group: Sequence[dict[str, Any]]) -> int:
    return int(max(sample["memory"]["reserved_bytes"]["overall_peak"] for sample in group))


def _middle(groups: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    most = max(len(group) for group in groups)
    fullest = sorted((group for group in groups if len(group) == most), key=lambda group: group[0]["cell"]["batch"])
    return fullest[len(fullest) // 2]


def _course(sample: dict[str, Any]) -> tuple[int | None, ...]:
    moments = sample["memory"]["reserved_bytes"]
    return tuple(moments[name] for name in ("initial", "after_step_1", "overall_peak"))


def _group(directory: Path, samples: Sequence[dict[str, Any]], looks: AllocatorLooks) -> LeftGroup | None:
    curves = [curve for sample in samples[:MAXIMUM_CURVES] if (curve := _curve(directory, sample, looks))]
    if len(curves) < 2:
        return None
    curves.sort(key=lambda curve: (-curve.least, -curve.before))
    cell = samples[0]["cell"]
    key = "left-" + slug("|".join((samples[0]["experiment"], cell["cell_id"])) + "|")
    title = f"{readable(cell['workload'])} on {readable(cell['device'])}"
    return LeftGroup(simulated(cell), _sentence(curves), left_chart(key, title, curves, _table(curves)))


def _curve(directory: Path, sample: dict[str, Any], looks: AllocatorLooks) -> Left | None:
    try:
        reserved = trace.reserved_by_step(
            directory, sample["trace_file"], sample["warmup_steps"] + sample["measured_steps"]
        )
    except trace.TraceError:
        return None  # the configuration's own section says why
    if reserved.capacity <= 0 or None in _course(sample):
        return None
    moments = sample["memory"]["reserved_bytes"]
    return Left(
        label=sample["cell"]["allocator"],
        look=looks[sample["cell"]["allocator"]],
        at=reserved.at,
        left=reserved.capacity - reserved.bytes,
        before=reserved.capacity - moments["initial"],
        after=reserved.capacity - moments["after_step_1"],
        least=reserved.capacity - moments["overall_peak"],
    )


def _sentence(curves: Sequence[Left]) -> str:
    most, fewest = curves[0], curves[-1]
    text = f"{most.label} never leaves less than {units.bytes_(most.least)}"
    if most.before > most.least:
        text += f" ({units.bytes_(most.before)} before step 1)"
    if fewest.least == most.least:
        return f"All leave at least {units.bytes_(most.least)}; they differ in when that is."
    return f"{text}; {fewest.label} leaves as little as {units.bytes_(fewest.least)}."


def _table(curves: Sequence[Left]) -> Table:
    rows = [
        (Datum(curve.label), bytes_datum(curve.before), bytes_datum(curve.after), bytes_datum(curve.least))
        for curve in curves
    ]
    return Table(("strategy", "left before step 1", "left after step 1", "least"), rows)


def _of_page(page: Page) -> LeftOver | None:
    left = build_left(page.data.directory, page.measured, page.looks)
    return left if left.groups else None


SECTION = Section("left", "Left over", "what a second process may take of the device", 45, _of_page, charts=True)
