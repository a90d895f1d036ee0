"""The matrix: workload × allocator, one table per device, only combinations that exist."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Sequence

from reports import glossary, units
from reports.axes import axes_of, axis_name, differing
from reports.glossary import Word
from reports.palette import AllocatorLooks, Look, SpecText, split_spec
from reports.slug import slug

# The page must stay a few MB: in large runs the tables offer fewer figures, and the list has fewer rows.
_MAXIMUM_FIGURES = 4000
_FEWEST_METRICS = 3
_MAXIMUM_ROWS = 250
# Shade by distance from the best of the row; the last has no upper end.
HEAT_STEPS = (1.0005, 1.03, 1.1, 1.3, 1.7, 2.5)


@dataclass(frozen=True)
class Figure:
    """One metric of one cell."""

    metric: str
    text: str
    exact: str
    interval: str
    heat: int | None
    ratio: str  # to the best of the row
    word: Word | None
    effect: str


@dataclass(frozen=True)
class MatrixCell:
    link: str
    status: str
    reason: str
    samples: int
    baseline: bool
    figures: Sequence[Figure]


@dataclass(frozen=True)
class MatrixRow:
    workload: SpecText
    label: str  # the parameters in which rows differ
    extra: str  # axes in which they do
    axes: dict[str, str]  # of those that can be selected
    cells: Sequence[MatrixCell | None]


@dataclass(frozen=True)
class DeviceTable:
    family: str  # what its experiments have in common
    device: str
    evidence: str  # measured, simulated, or neither
    allocators: Sequence[tuple[SpecText, Look]]
    rows: Sequence[MatrixRow]
    shared: str  # parameters all its workloads have


@dataclass(frozen=True)
class Matrix:
    metrics: Sequence[tuple[str, str]]  # name, words: what the tables offer
    default: str
    all_metrics: Sequence[tuple[str, str]]  # those of the list
    tables: Sequence[DeviceTable]
    devices: Sequence[str]
    entries: int
    offered: int  # figures there would be room for in a smaller run
    repeated: int  # entries left out because another experiment measured the same cell more often
    selectors: Sequence[tuple[str, str, Sequence[str]]]  # axis, words, the values this run has
    flat: Sequence[dict[str, Any]] = field(default_factory=list)  # every entry, for the list below


def build_matrix(entries: Sequence[dict[str, Any]], looks: AllocatorLooks) -> Matrix:
    all_metrics = _metrics(entries)
    offered = [name for name in glossary.matrix_metrics() if name in all_metrics] or all_metrics[:1]
    metrics = offered[: max(_FEWEST_METRICS, _MAXIMUM_FIGURES // max(len(entries), 1))]
    baselines = {(entry["experiment"], entry["baseline_arm"]) for entry in entries}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault((_family(entry["experiment"]), entry["cell"]["device"]), []).append(entry)
    selectors = [axis for axis in differing([entry["cell"] for entry in entries]) if axis != "allocator"]
    tables, shown = [], 0
    for (family, device), members in groups.items():
        table, used = _table(family, device, members, metrics, baselines, looks, selectors)
        tables.append(table)
        shown += used
    return Matrix(
        metrics=[(metric, glossary.metric(metric)) for metric in metrics],
        default=next(iter(metrics), ""),
        all_metrics=[(metric, glossary.metric(metric)) for metric in all_metrics],
        tables=tables,
        devices=list(dict.fromkeys(device for _, device in groups)),
        entries=len(entries),
        offered=len(offered),
        repeated=len(entries) - shown,
        selectors=[(axis, axis_name(axis), _values(entries, axis)) for axis in selectors],
        flat=[_flat(entry, all_metrics) for entry in entries[:_MAXIMUM_ROWS]],
    )


def _family(experiment: str) -> str:
    """ "S02/v100/batch=32" → "S02/v100": what was asked for together stands in one table."""
    return "/".join(itertools.takewhile(lambda step: "=" not in step, experiment.split("/")))


def _table(
    family: str,
    device: str,
    entries: Sequence[dict[str, Any]],
    metrics: Sequence[str],
    baselines: set[tuple[str, str | None]],
    looks: AllocatorLooks,
    selectors: Sequence[str],
) -> tuple[DeviceTable, int]:
    """The table and how many entries it shows: of two with the same cell, the better measured."""
    extra_axes = [axis for axis in differing([entry["cell"] for entry in entries]) if axis != "allocator"]
    steps_differ = len({(entry["cell"]["warmup_steps"], entry["cell"]["measured_steps"]) for entry in entries}) > 1
    chosen: dict[tuple[str, str, str], dict[str, Any]] = {}
    for entry in entries:
        key = (*_row_key(entry["cell"], extra_axes, steps_differ), entry["cell"]["allocator"])
        if key not in chosen or entry["samples"] > chosen[key]["samples"]:
            chosen[key] = entry
    present = {allocator for _, _, allocator in chosen}
    allocators = [spec for spec in looks.ordered() if spec in present]
    shared = _shared_parameters([workload for workload, _ in dict.fromkeys(key[:2] for key in chosen)])
    rows = []
    for workload, extra in dict.fromkeys(key[:2] for key in chosen):
        row = [chosen.get((workload, extra, allocator)) for allocator in allocators]
        rows.append(_row(row, extra, shared, metrics, baselines, selectors))
    table = DeviceTable(
        family=family,
        device=device,
        evidence=_evidence(entries),
        allocators=[(split_spec(allocator), looks[allocator]) for allocator in allocators],
        rows=rows,
        shared=", ".join(shared),
    )
    return table, len(chosen)


def _evidence(entries: Sequence[dict[str, Any]]) -> str:
    if not any(entry["status"] == "ok" for entry in entries):
        return "no figure"
    return "simulated" if entries[0]["cell"]["device_class"] == "meta" else "measured"


def _metrics(entries: Sequence[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for entry in entries:
        for name, value in entry["values"].items():
            if value is not None:
                names[name] = None
    return list(names)


def _shared_parameters(workloads: Sequence[str]) -> list[str]:
    """What need not be repeated in every row."""
    if len(workloads) < 2:
        return []
    parameters = [split_spec(workload).parameters.split(", ") for workload in dict.fromkeys(workloads)]
    return [part for part in parameters[0] if part and all(part in other for other in parameters[1:])]


def _row_key(cell: dict[str, Any], extra_axes: Sequence[str], steps_differ: bool) -> tuple[str, str]:
    axes = axes_of(cell)
    extra = [f"{axis_name(axis)} {axes.get(axis, 'none')}" for axis in extra_axes]
    if steps_differ:  # no strategy, and yet another figure
        extra.append(f"{cell['warmup_steps']} warm-up and {cell['measured_steps']} measured steps")
    return cell["workload"], ", ".join(extra)


def _values(entries: Sequence[dict[str, Any]], axis: str) -> list[str]:
    """In the order of the run."""
    return list(dict.fromkeys(axes_of(entry["cell"]).get(axis, "none") for entry in entries))


def _row(
    row: Sequence[dict[str, Any] | None],
    extra: str,
    shared: Sequence[str],
    metrics: Sequence[str],
    baselines: set[tuple[str, str | None]],
    selectors: Sequence[str],
) -> MatrixRow:
    first = next(entry for entry in row if entry is not None)
    best: dict[str, float] = {}
    for metric in metrics:
        values = [entry["values"].get(metric) for entry in row if entry is not None]
        known = [value for value in values if value is not None]
        if known:
            best[metric] = max(known) if glossary.more_is_better(metric) else min(known)
    workload = split_spec(first["cell"]["workload"])
    return MatrixRow(
        workload=workload,
        label=", ".join(part for part in workload.parameters.split(", ") if part not in shared),
        extra=extra,
        axes={axis: axes_of(first["cell"]).get(axis, "none") for axis in selectors},
        cells=[None if entry is None else _cell(entry, metrics, best, baselines) for entry in row],
    )


def _cell(
    entry: dict[str, Any], metrics: Sequence[str], best: dict[str, float], baselines: set[tuple[str, str | None]]
) -> MatrixCell:
    baseline = (entry["experiment"], entry["arm"]) in baselines
    return MatrixCell(
        link="cell-" + slug(entry["cell"]["cell_id"]),
        status=entry["status"].replace("_", " "),
        reason=entry["reason"] or "",
        samples=entry["samples"],
        baseline=baseline,
        figures=[_figure(entry, metric, best.get(metric)) for metric in metrics],
    )


def _figure(entry: dict[str, Any], metric: str, best: float | None) -> Figure:
    value = entry["values"].get(metric)
    unit = units.unit_of(metric)
    comparison = entry["comparisons"].get(metric)
    interval = entry["intervals"].get(metric)
    heat, ratio = None, ""
    if value is not None and best is not None and value > 0 and best > 0:
        distance = best / value if glossary.more_is_better(metric) else value / best
        heat = sum(distance > step for step in HEAT_STEPS)
        ratio = "best" if heat == 0 else f"{units.plain(round(distance, 2))}× best"
    effect = ""
    if comparison is not None:
        relative = comparison["scale"] == "log_ratio"
        effect = (
            units.effect(comparison.get("effect")) if relative else units.value_in(comparison["theta"], unit)
        )
    return Figure(
        metric=metric,
        text=units.value_in(value, unit),
        exact=units.exact(value, unit),
        interval=_interval(interval, value, unit),
        heat=heat,
        ratio=ratio,
        word=glossary.verdict(comparison["verdict"]) if comparison else None,
        effect=effect,
    )


def _interval(interval: list[float | None] | None, value: float | None, unit: str) -> str:
    if interval is None or value is None or interval[0] is None or interval[1] is None:
        return ""
    low, high = interval
    if low == high:
        return ""
    return f"{units.value_in(low, unit)} … {units.value_in(high, unit)}"


def _flat(entry: dict[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    return {
        "entry": entry,
        "link": "cell-" + slug(entry["cell"]["cell_id"]),
        "values": [
            (
                units.value_in(entry["values"].get(metric), units.unit_of(metric)),
                units.exact(entry["values"].get(metric), units.unit_of(metric)),
                entry["values"].get(metric),
            )
            for metric in metrics
        ],
    }
