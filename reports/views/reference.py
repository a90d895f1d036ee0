"""Results from machines that few have, kept under reports/reference beside the report's code: each
folder there is run.json and verdicts.json of one run. They stand beside the figures of the run at
hand under the name of their machine, and never among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Sequence

from reports.charts.style import Datum, Table, bytes_datum
from reports.data import units
from reports.data.axes import axes_of
from reports.data.read import read_record
from reports.views.page import Section

REFERENCES = Path(__file__).parents[1] / "reference"
MAXIMUM_ROWS = 80
# The axes that the machine decides.
_OF_THE_MACHINE = ("device", "rules")


@dataclass(frozen=True)
class Reference:
    machine: str
    provenance: str
    cells: Table | None
    claims: Table | None
    note: str


def build_references(
    entries: Sequence[dict[str, Any]], claims: Sequence[dict[str, Any]], place: Path = REFERENCES
) -> list[Reference]:
    """One entry for each stored run that shares a configuration or a claim with this one."""
    folders = sorted(run.parent for run in place.glob("*/run.json"))
    references = (_reference(folder, entries, claims) for folder in folders)
    return [reference for reference in references if reference.cells or reference.claims]


def _reference(folder: Path, entries: Sequence[dict[str, Any]], claims: Sequence[dict[str, Any]]) -> Reference:
    run = read_record(folder / "run.json", "run")
    verdicts = read_record(folder / "verdicts.json", "verdicts")
    machine, build = run["machine"], run["headroom"]
    commit = (build["commit"] or "unknown")[:12] + (" with changes" if build["dirty"] else "")
    cells, left_out = _cells(entries, verdicts["matrix"])
    return Reference(
        machine=machine["gpu"] or machine["cpu"],
        provenance=f"{folder.name}: driver {machine['gpu_driver'] or 'none'}, {machine['cpu']}, commit {commit}, "
        f"{run['started']}",
        cells=cells,
        claims=_claims(claims, verdicts["claims"]),
        note=f"{left_out} more configurations are in its verdicts.json." if left_out else "",
    )


def _problem(cell: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    axes = {"workload": cell["workload"], **axes_of(cell)}
    return tuple((axis, value) for axis, value in sorted(axes.items()) if axis not in _OF_THE_MACHINE)


def _cells(entries: Sequence[dict[str, Any]], theirs: Iterable[dict[str, Any]]) -> tuple[Table | None, int]:
    ours: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for entry in entries:
        ours.setdefault(_problem(entry["cell"]), []).append(entry)
    rows = []
    for there in theirs:
        for here in ours.get(_problem(there["cell"]), []):
            cell = here["cell"]
            rows.append(
                (
                    Datum(cell["workload"]),
                    Datum(cell["allocator"]),
                    *_figures(there),
                    Datum(cell["device"]),
                    *_figures(here),
                )
            )
    headers = ("workload", "allocator", "step time there", "peak reserved there")
    table = Table((*headers, "device here", "step time here", "peak reserved here"), rows[:MAXIMUM_ROWS])
    return (table if rows else None), max(0, len(rows) - MAXIMUM_ROWS)


def _figures(entry: dict[str, Any]) -> tuple[Datum, Datum]:
    if entry["status"] != "ok":
        return Datum(entry["status"]), Datum(entry["status"])
    time = entry["values"].get("steady_step_time_ns")
    peak = entry["values"].get("reserved_bytes.overall_peak")
    return (
        Datum(units.nanoseconds(time), sort=time) if time is not None else Datum("not timed"),
        bytes_datum(int(peak)) if peak is not None else Datum("none"),
    )


def _claims(ours: Sequence[dict[str, Any]], theirs: Iterable[dict[str, Any]]) -> Table | None:
    verdicts = {claim["id"]: claim["verdict"] for claim in theirs}
    rows = [
        (Datum(claim["id"]), Datum(claim["title"]), Datum(verdicts[claim["id"]]), Datum(claim["verdict"]))
        for claim in ours
        if claim["id"] in verdicts
    ]
    return Table(("claim", "what it says", "verdict there", "verdict here"), rows) if rows else None


SECTION = Section(
    address="reference",
    title="Reference",
    about="the same figures from other machines",
    place=70,
    build=lambda page: build_references(page.entries, page.claims),
)
