"""The matrix: workload × allocator, one table per device, only combinations that exist. If there is only
one allocator, the values of another axis are the columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Sequence

from markupsafe import Markup

from reports.charts.palette import AllocatorLooks, Look, SpecText, plain_name, split_spec
from reports.charts.style import Datum
from reports.data import glossary, units
from reports.data.axes import axes_of, axis_name, choices, differing
from reports.data.devices import basis
from reports.data.slug import slug
from reports.views.matrix_figures import Figure, figure_of, pack
from reports.views.page import Page, Section

# The page must stay below 3 MB. In large runs the list first loses columns, then rows.
_MAXIMUM_LISTED = 4000
_FEWEST_LISTED = 4
_MAXIMUM_ROWS = 400


@dataclass(frozen=True)
class MatrixCell:
    link: str
    status: str
    oom: bool
    reason: str
    samples: int
    figures: Sequence[Figure]  # in the order of the metrics

    @property
    def known(self) -> bool:
        known = any(figure.text != units.DASH for figure in self.figures)
        return bool(self.figures) and (self.status == "ok" or known)


@dataclass(frozen=True)
class MatrixRow:
    workload: SpecText
    label: str  # the parameters in which rows differ
    extra: str  # axes in which they do
    axes: dict[str, str]  # values of the axes that a reader can select by
    cells: Sequence[MatrixCell | None]


@dataclass(frozen=True)
class DeviceTable:
    family: str  # the common part of its experiments' names
    device: str
    evidence: str  # measured, simulated, virtual, or none of these
    columns: Sequence[tuple[SpecText, Look | None]]  # each with its look; None if they are not allocators
    rows: Sequence[MatrixRow]
    shared: str  # parameters of all its workloads; the allocator if it is not a column
    reference: str  # the column that ratios refer to; empty if there is none
    whose: str  # default it is: "PyTorch's default"

    @property
    def known_cells(self) -> list[MatrixCell]:
        """The cells that have figures, in the order of the page."""
        return [cell for row in self.rows for cell in row.cells if cell is not None and cell.known]


@dataclass(frozen=True)
class Matrix:
    metrics: Sequence[tuple[str, str]]  # name and words of each figure that the tables offer
    default: str
    listed: Sequence[tuple[str, str]]  # the entries of the list
    recorded: int  # the number of all entries
    tables: Sequence[DeviceTable]
    devices: Sequence[str]
    entries: int
    repeated: int  # entries left out because another experiment measured the same configuration more often
    selectors: Sequence[tuple[str, str, Sequence[str]]]  # axis, words, the values this run has
    data: Markup  # JSON for the script: every figure of every configuration shown
    flat: Sequence[dict[str, Any]] = field(default_factory=list)  # every entry, for the list below


def build_matrix(entries: Sequence[dict[str, Any]], looks: AllocatorLooks) -> Matrix:
    all_metrics = _metrics(entries)
    metrics = [name for name in glossary.matrix_metrics() if name in all_metrics] or all_metrics[:1]
    rows = entries[:_MAXIMUM_ROWS]
    room = max(_FEWEST_LISTED, _MAXIMUM_LISTED // max(len(rows), 1))
    ranked = [*metrics, *(name for name in all_metrics if name not in metrics)]
    listed = [name for name in all_metrics if name in ranked[:room]]
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
        listed=[(metric, glossary.metric(metric)) for metric in listed],
        recorded=len(all_metrics),
        tables=tables,
        devices=list(dict.fromkeys(device for _, device in groups)),
        entries=len(entries),
        repeated=len(entries) - shown,
        selectors=[(axis, axis_name(axis), _values(entries, axis)) for axis in selectors],
        data=pack(metrics, [cell.figures for table in tables for cell in table.known_cells]),
        flat=[_flat(entry, listed) for entry in rows],
    )


def _family(experiment: str) -> str:
    """ "S02/v100/batch=32" → "S02/v100": experiments of one prefix share a table."""
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
    """The table and how many entries it shows. Of two entries for one configuration it shows the better measured one."""
    extra_axes = [axis for axis in differing([entry["cell"] for entry in entries]) if axis != "allocator"]
    steps_differ = len({(entry["cell"]["warmup_steps"], entry["cell"]["measured_steps"]) for entry in entries}) > 1
    across = _across(entries, extra_axes)
    kept_axes = [axis for axis in extra_axes if axis != across]
    chosen: dict[tuple[str, str, str], dict[str, Any]] = {}
    for entry in entries:
        key = (*_row_key(entry["cell"], kept_axes, steps_differ), axes_of(entry["cell"]).get(across, "none"))
        if key not in chosen or entry["samples"] > chosen[key]["samples"]:
            chosen[key] = entry
    present = list(dict.fromkeys(column for _, _, column in chosen))
    if across == "allocator":
        present.sort(key=looks.ordered().index)
    shared = _shared_parameters([workload for workload, _ in dict.fromkeys(key[:2] for key in chosen)])
    reference, whose = _reference(present, across, entries, baselines)
    rows = []
    for workload, extra in dict.fromkeys(key[:2] for key in chosen):
        row = [chosen.get((workload, extra, column)) for column in present]
        rows.append(_row(row, extra, shared, metrics, chosen.get((workload, extra, reference)), selectors))
    if across != "allocator":
        shared.append(f"allocator {entries[0]['cell']['allocator']}, {axis_name(across)} side by side")
    table = DeviceTable(
        family=family,
        device=device,
        evidence=_evidence(entries),
        columns=[(split_spec(column), looks[column] if across == "allocator" else None) for column in present],
        rows=rows,
        shared=", ".join(shared),
        reference=reference,
        whose=whose,
    )
    return table, len(chosen)


def _across(entries: Sequence[dict[str, Any]], extra_axes: Sequence[str]) -> str:
    """The axis whose choices are the columns."""
    if len({entry["cell"]["allocator"] for entry in entries}) > 1 or not extra_axes:
        return "allocator"
    return max(extra_axes, key=lambda axis: len(_values(entries, axis)))


def _reference(
    columns: Sequence[str], across: str, entries: Sequence[dict[str, Any]], baselines: set[tuple[str, str | None]]
) -> tuple[str, str]:
    """The column with which others are compared, and whose default it is: a framework's if there
    is one; else the baseline of its experiment."""
    if len(columns) < 2:
        return "", ""
    if across == "allocator":
        for default, whose in glossary.framework_defaults().items():
            for column in columns:
                if plain_name(column) == default:
                    return column, whose
    of_baseline = {
        axes_of(entry["cell"]).get(across, "none")
        for entry in entries
        if (entry["experiment"], entry["arm"]) in baselines
    }
    found = next((column for column in columns if column == "none" or column in of_baseline), "")
    return found, "the baseline of its experiment" if found in of_baseline else ""


def _evidence(entries: Sequence[dict[str, Any]]) -> str:
    if not any(entry["status"] == "ok" for entry in entries):
        return "no figure"
    return basis(entries[0]["cell"])


def _metrics(entries: Sequence[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for entry in entries:
        for name, value in entry["values"].items():
            if value is not None:
                names[name] = None
    return list(names)


def _shared_parameters(workloads: Sequence[str]) -> list[str]:
    """Parameters that are not repeated in every row."""
    if len(workloads) < 2:
        return []
    parameters = [split_spec(workload).parameters.split(", ") for workload in dict.fromkeys(workloads)]
    return [part for part in parameters[0] if part and all(part in other for other in parameters[1:])]


def _row_key(cell: dict[str, Any], extra_axes: Sequence[str], steps_differ: bool) -> tuple[str, str]:
    extra = choices(cell, extra_axes)
    if steps_differ:  # not a strategy, but a different figure
        extra.append(f"{cell['warmup_steps']} warm-up and {cell['measured_steps']} measured steps")
    return cell["workload"], ", ".join(extra)


def _values(entries: Sequence[dict[str, Any]], axis: str) -> list[str]:
    """The values in the order of the run."""
    return list(dict.fromkeys(axes_of(entry["cell"]).get(axis, "none") for entry in entries))


def _row(
    row: Sequence[dict[str, Any] | None],
    extra: str,
    shared: Sequence[str],
    metrics: Sequence[str],
    reference: dict[str, Any] | None,
    selectors: Sequence[str],
) -> MatrixRow:
    first = next(entry for entry in row if entry is not None)
    workload = split_spec(first["cell"]["workload"])
    return MatrixRow(
        workload=workload,
        label=", ".join(part for part in workload.parameters.split(", ") if part not in shared),
        extra=extra,
        axes={axis: axes_of(first["cell"]).get(axis, "none") for axis in selectors},
        cells=[None if entry is None else _cell(entry, metrics, {} if entry is reference or not reference else reference["values"]) for entry in row],
    )


def _cell(entry: dict[str, Any], metrics: Sequence[str], reference: dict[str, float | None]) -> MatrixCell:
    return MatrixCell(
        link="cell-" + slug(entry["cell"]["cell_id"]),
        status="out of memory" if entry["status"] == "oom" else entry["status"].replace("_", " "),
        oom=entry["status"] == "oom",
        reason=entry["reason"] or "",
        samples=entry["samples"],
        figures=[figure_of(entry, metric, reference.get(metric)) for metric in metrics],
    )


def _flat(entry: dict[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    return {
        "entry": entry,
        "link": "cell-" + slug(entry["cell"]["cell_id"]),
        "values": [
            Datum(units.value_in(value, unit), units.exact(value, unit) if value is not None else "", value)
            for value, unit in ((entry["values"].get(metric), units.unit_of(metric)) for metric in metrics)
        ],
    }


def _of_page(page: Page) -> Matrix | None:
    matrix = build_matrix(page.matrix, page.looks)
    return matrix if matrix.tables else None


SECTION = Section("matrix", "Matrix", "every workload beside every allocator", 20, _of_page)
