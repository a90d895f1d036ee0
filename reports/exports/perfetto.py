"""Recorded traces as Chrome's trace events, which Perfetto reads: what was requested, allocated and
reserved as counters, and step > phase > op as nested slices. One process per cell.

An op appears when it allocates or frees. All events of an op carry the time at which it began: they
are set 1 ns apart, which keeps their order and every peak. Where nothing is computed there is no
time, and events stand 1 µs apart.
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Sequence

import numpy

from reports.data import trace
from reports.data.devices import simulated
from reports.data.read import Changes, RunData

# ui.perfetto.dev opens this many without effort; about 25 MB.
MAXIMUM_EVENTS = 250_000
_COUNTERS = ("requested", "allocated", "reserved")


def write(data: RunData, _changes: Changes | None = None) -> str:
    events: list[dict[str, Any]] = []
    drawn, left_out = 0, []
    for sample in _chosen(data.samples):
        name = f"{sample['experiment']} [{sample['arm']}]"
        try:
            timeline = trace.load(data.directory, sample["trace_file"])
        except trace.TraceError as error:
            left_out.append(f"{name}: {error}")
            continue
        fresh = list(_process(drawn + 1, name, sample, timeline))
        if events and len(events) + len(fresh) > MAXIMUM_EVENTS:
            left_out.append(f"{name}: this file holds {MAXIMUM_EVENTS:,} events at most")
            continue
        events += fresh
        drawn += 1
    other = {
        "run": data.run["run_id"],
        "cells_shown": drawn,
        "cells_left_out": left_out,
        "one_cell": "headroom export TRACE --to pytorch writes a single trace for PyTorch's memory viewer",
    }
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","otherData":{json.dumps(other)},"traceEvents":[\n{lines}\n]}}\n'


def _chosen(samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first trace of each configuration, measured ones first."""
    first: dict[str, dict[str, Any]] = {}
    for sample in samples:
        if sample["trace_file"]:
            first.setdefault(sample["cell"]["cell_id"], sample)
    return sorted(first.values(), key=lambda sample: simulated(sample["cell"]))


def _process(pid: int, name: str, sample: dict[str, Any], timeline: trace.Timeline) -> Iterator[dict[str, Any]]:
    at, timed = _times(timeline)
    cell = sample["cell"]
    label = f"{name}: {cell['workload']}, {cell['allocator']}, {cell['device']}"
    for kind, text in (("process_name", label), ("thread_name", "steps" if timed else "events, 1 µs each: no time")):
        yield {"ph": "M", "pid": pid, "tid": 1, "name": kind, "args": {"name": text}}
    for counter in _COUNTERS:
        values = getattr(timeline, counter)
        changed = numpy.flatnonzero(numpy.diff(values, prepend=values[0] - 1))
        for event in changed:
            yield {
                "ph": "C", "pid": pid, "name": counter, "ts": at[event] / 1000, "args": {"bytes": int(values[event])},
            }  # fmt: skip
    ops = ["" if op < 0 else timeline.op_names[op] for op in timeline.op.tolist()]
    steps = ["set-up" if step == 0 else f"step {step}" for step in timeline.step.tolist()]
    phases = [timeline.phases[phase] for phase in timeline.phase.tolist()]
    levels = (("step", [steps]), ("phase", [steps, phases]), ("op", [steps, phases, ops]))
    for category, names in levels:
        yield from _slices(pid, category, list(zip(*names)), at)
    if timeline.failure:
        event, requested = timeline.failure.event, timeline.failure.requested
        yield {
            "ph": "i", "pid": pid, "tid": 1, "s": "p", "name": "out of memory",
            "ts": at[event] / 1000, "args": {"requested_bytes": requested},
        }  # fmt: skip


def _times(timeline: trace.Timeline) -> tuple[list[int], bool]:
    """Strictly increasing times in ns, and whether they are real."""
    if not timeline.timed:
        return [1000 * event for event in range(len(timeline.time_ns))], False
    times: list[int] = []
    for time in timeline.time_ns.tolist():
        times.append(max(time, times[-1] + 1) if times else time)
    return times, True


def _slices(pid: int, category: str, names: Sequence[tuple[str, ...]], at: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One slice for each stretch of equal names, until the next begins."""
    starts = [event for event in range(len(names)) if event == 0 or names[event] != names[event - 1]]
    for start, end in zip(starts, [*starts[1:], len(names)]):
        if not names[start][-1]:
            continue
        until = at[end] if end < len(at) else at[-1] + 1
        yield {
            "ph": "X", "pid": pid, "tid": 1, "cat": category, "name": names[start][-1],
            "ts": at[start] / 1000, "dur": (until - at[start]) / 1000,
        }  # fmt: skip
