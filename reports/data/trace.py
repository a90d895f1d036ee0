"""Reads a recorded trace and follows the bytes: requested, allocated and reserved after each
event, by role, by phase, by step.

A trace file may be damaged. Every contradiction ends in TraceError, never in a wrong curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from harness.trace import file as trace_file
from reports.data.devices import simulated_device
from reports.data.failure import Failure, failure_at
from reports.data.layout import Layout, layout_at

MAXIMUM_EVENTS = 4_000_000  # beyond that the report says so instead of drawing
_COLUMNS = ("kind", "role", "phase", "id", "op", "step", "requested_bytes", "size_bytes", "time_ns")


class TraceError(Exception):
    """Says why this trace cannot be drawn."""


@dataclass(frozen=True)
class Timeline:
    """Values after each event, in bytes; arrays of equal length."""

    header: dict[str, Any]
    op_names: list[str]
    phases: list[str]  # names by index
    step: numpy.ndarray
    phase: numpy.ndarray
    time_ns: numpy.ndarray
    op: numpy.ndarray  # index of op_names; −1 outside ops
    requested: numpy.ndarray
    allocated: numpy.ndarray
    reserved: numpy.ndarray
    by_role: dict[str, numpy.ndarray]  # requested bytes
    live_at_peak: list[tuple[str, str, int]]  # op, role, bytes: the largest first
    failure: Failure | None  # where it ran out of memory
    layout: Layout | None  # at the peak; None where addresses mean nothing
    broken: list[str]  # invariants that do not hold, in words

    @property
    def timed(self) -> bool:
        """Whether times are meaningful: a simulated device computes nothing."""
        time = self.time_ns
        computes = not simulated_device(str(self.header["device"]))
        return computes and bool(time[-1] > time[0]) and bool((numpy.diff(time) >= 0).all())

    @property
    def peak(self) -> int:
        """The event at which allocated bytes were highest."""
        return int(numpy.argmax(self.allocated))


def load(run_directory: Path, name: str) -> Timeline:
    """Reads `name`, which must lie inside the run directory. Raises TraceError."""
    recorded = _read(run_directory, name)
    columns = {column: values.tolist() for column, values in recorded.columns.items()}
    return follow(recorded.header, recorded.op_names, columns)


@dataclass(frozen=True)
class ReservedBySteps:
    """`at`: the step plus the share of its events so far; set-up runs from 0 to 1."""

    at: numpy.ndarray
    bytes: numpy.ndarray
    capacity: int


def reserved_by_step(run_directory: Path, name: str, steps: int) -> ReservedBySteps:
    """Reserved bytes alone, up to the end of the last step, before everything is given back.
    Raises TraceError."""
    recorded = _read(run_directory, name)
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    sign = numpy.array([signs.get(kind, 0) for kind in recorded.header["kinds"]])[recorded.columns["kind"]]
    reserved = numpy.cumsum(sign * recorded.columns["size_bytes"].astype(numpy.int64))
    step = recorded.columns["step"].astype(numpy.int64)
    if (numpy.diff(step) < 0).any():
        raise TraceError(f"the trace {name} has steps out of order")
    first = numpy.searchsorted(step, step, side="left")
    count = numpy.searchsorted(step, step, side="right") - first
    at = step + (numpy.arange(len(step)) - first) / count
    inside = step <= steps
    if not inside.any():
        raise TraceError(f"the trace {name} has no step")
    return ReservedBySteps(at[inside], reserved[inside], recorded.header["capacity_bytes"])


def _read(run_directory: Path, name: str) -> trace_file.Trace:
    root = run_directory.resolve()
    file = (root / name).resolve()
    if not file.is_relative_to(root):
        raise TraceError(f"the trace {name} lies outside the run directory")
    try:
        recorded = trace_file.read_trace(file, MAXIMUM_EVENTS)
    except FileNotFoundError:
        raise TraceError(f"the trace {name} is missing") from None
    except OSError as error:
        raise TraceError(f"the trace {name} cannot be read ({error})") from None
    except trace_file.TraceFileError as error:
        raise TraceError(f"the trace {name} {error}") from None
    if len(recorded.columns["kind"]) == 0:
        raise TraceError(f"the trace {name} has no events")
    return recorded


def follow(header: dict[str, Any], op_names: list[str], columns: dict[str, list[int]]) -> Timeline:
    """Follows a trace of at least one event, as `harness.trace.file` reads it, with columns as lists."""
    arrays = {key: numpy.asarray(columns[key], dtype=numpy.int64) for key in _COLUMNS}
    count = len(arrays["kind"])
    kinds = [header["kinds"][index] for index in columns["kind"]]
    roles = [header["roles"][index] for index in columns["role"]]

    change = {level: numpy.zeros(count, dtype=numpy.int64) for level in ("requested", "allocated", "reserved")}
    by_role: dict[str, numpy.ndarray] = {}
    born: dict[int, int] = {}  # block id → its alloc event
    segments: dict[int, int] = {}
    died = numpy.full(count, count, dtype=numpy.int64)
    broken: list[str] = []
    failed = None
    for event, kind in enumerate(kinds):
        key = columns["id"][event]
        if kind == "alloc":
            born[key] = event
            _apply(change, by_role, roles, columns, event, event, +1)
        elif kind == "free":
            origin = born.pop(key, None)
            if origin is None:
                broken.append(f"event {event} frees block {key}, which is not live")
                continue
            died[origin] = event
            _apply(change, by_role, roles, columns, event, origin, -1)
        elif kind == "segment_alloc":
            segments[key] = columns["size_bytes"][event]
            change["reserved"][event] += columns["size_bytes"][event]
        elif kind == "segment_free":
            change["reserved"][event] -= segments.pop(key, columns["size_bytes"][event])
        elif kind in ("segment_map", "segment_unmap"):
            sign = 1 if kind == "segment_map" else -1
            change["reserved"][event] += sign * columns["size_bytes"][event]
        elif kind == "oom":
            failed = event
    totals = {kind: numpy.cumsum(array) for kind, array in change.items()}
    peak = int(numpy.argmax(totals["allocated"]))
    return Timeline(
        header=header,
        op_names=op_names,
        phases=header["phases"],
        step=arrays["step"],
        phase=arrays["phase"],
        time_ns=arrays["time_ns"],
        op=numpy.where(arrays["op"] < len(op_names), arrays["op"], -1),
        by_role={role: numpy.cumsum(array) for role, array in by_role.items()},
        live_at_peak=_live(kinds, roles, columns, op_names, died, peak),
        failure=None if failed is None else failure_at(header, op_names, kinds, roles, columns, failed),
        layout=layout_at(kinds, roles, columns, peak),
        broken=broken[:3] + check(totals, header["capacity_bytes"]),
        **totals,
    )


def _apply(
    change: dict[str, numpy.ndarray],
    by_role: dict[str, numpy.ndarray],
    roles: list[str],
    columns: dict[str, Any],
    event: int,
    origin: int,
    sign: int,
) -> None:
    requested = sign * columns["requested_bytes"][origin]
    change["requested"][event] += requested
    change["allocated"][event] += sign * columns["size_bytes"][origin]
    role = roles[origin]
    if role not in by_role:
        by_role[role] = numpy.zeros(len(columns["kind"]), dtype=numpy.int64)
    by_role[role][event] += requested


def check(totals: dict[str, numpy.ndarray], capacity: int) -> list[str]:
    """requested ≤ allocated ≤ reserved ≤ capacity, at every event."""
    rungs = [("requested", totals["requested"]), ("allocated", totals["allocated"]), ("reserved", totals["reserved"])]
    if capacity:
        rungs.append(("capacity", numpy.full_like(totals["reserved"], capacity)))
    broken = []
    for (lower, below), (upper, above) in zip(rungs, rungs[1:]):
        wrong = numpy.flatnonzero(below > above)
        if len(wrong):
            event = int(wrong[0])
            broken.append(
                f"{lower} exceeds {upper} at {len(wrong)} of {len(below)} events, "
                f"first at event {event}: {int(below[event]):,} > {int(above[event]):,} bytes"
            )
    return broken


def _live(
    kinds: list[str],
    roles: list[str],
    columns: dict[str, Any],
    op_names: list[str],
    died: numpy.ndarray,
    peak: int,
) -> list[tuple[str, str, int]]:
    live = [event for event in range(peak + 1) if kinds[event] == "alloc" and died[event] > peak]
    sums: dict[tuple[str, str], int] = {}
    for event in live:
        op = columns["op"][event]
        name = op_names[op] if 0 <= op < len(op_names) else "outside any op"
        if columns["step"][event] == 0:
            name = "set up before step 1"
        key = (name, roles[event])
        sums[key] = sums.get(key, 0) + columns["requested_bytes"][event]
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return [(op, role, size) for (op, role), size in ordered]


def thin(values: numpy.ndarray, *, budget: int) -> numpy.ndarray:
    """Indices of at most about `budget` points that keep every bucket's first, lowest, highest
    and last value, so that no peak is lost."""
    count = len(values)
    if count <= budget:
        return numpy.arange(count)
    kept: set[int] = {0, count - 1}
    edges = numpy.linspace(0, count, max(budget // 4, 1) + 1).astype(int)
    for start, end in zip(edges, edges[1:]):
        if end > start:
            bucket = values[start:end]
            kept.update((start, start + int(bucket.argmin()), start + int(bucket.argmax()), end - 1))
    return numpy.array(sorted(kept))
