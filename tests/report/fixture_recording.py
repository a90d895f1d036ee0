"""A made-up recording: the events of a training step under two allocators, and its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.trace.file import Trace, TraceWriter

MIB = 2**20
GIB = 2**30
WARMUP, MEASURED = 2, 5
ROLES = [
    "input",
    "weight",
    "statistic",
    "gradient",
    "optimizer_state",
    "activation",
    "activation_gradient",
    "workspace",
    "result",
]
PHASES = ["load", "forward", "backward", "update", "evaluate", "initialize"]
KINDS = ["alloc", "free", "segment_alloc", "segment_free", "oom"]


@dataclass
class Recording:
    """Events of one made-up run, and the figures a ledger would take from them."""

    capacity: int
    growth: bool
    clock_ns: int | None  # per event; None: a device without a clock
    columns: dict[str, list[int]] = field(default_factory=dict)
    live: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=lambda: {"requested": 0, "allocated": 0, "reserved": 0})
    history: list[tuple[int, int, int, int]] = field(default_factory=list)
    by_role_at_peak: dict[str, int] = field(default_factory=dict)
    device_allocations: list[int] = field(default_factory=lambda: [0] * (WARMUP + MEASURED))
    step: int = 0
    phase: int = 5
    op: int = -1
    next_id: int = 1
    next_segment: int = 1
    next_region: int = 2 * MIB
    time: int = 0
    peak_requested: int = 0
    holes: list[tuple[int, int]] = field(default_factory=list)  # address, size
    top: int = 1 << 32  # of the address space so far

    def __post_init__(self) -> None:
        names = ("kind", "role", "phase", "stream", "id", "op", "step")
        names += ("requested_bytes", "size_bytes", "address", "time_ns")
        self.columns = {name: [] for name in names}

    def event(self, kind: int, role: int, identity: int, requested: int, size: int, address: int) -> None:
        self.time += self.clock_ns or 0
        row = (kind, role, self.phase, 0, identity, self.op, self.step, requested, size, address, self.time)
        for name, value in zip(self.columns, row):
            self.columns[name].append(value)
        self.history.append((self.step, *self.totals.values()))

    def extend(self, needed: int) -> None:
        if not self.growth:
            size = self.capacity
        else:
            while self.next_region < needed:
                self.next_region *= 2
            size, self.next_region = self.next_region, self.next_region * 2
        self.totals["reserved"] += size
        self.time += (self.clock_ns or 0) * (40 if self.growth else 4)
        if self.step:
            self.device_allocations[self.step - 1] += 1
        self.event(2, ROLES.index("workspace"), self.next_segment, size, size, self.top)
        self.holes.append((self.top, size))
        self.top += size + 2 * MIB  # segments do not touch
        self.next_segment += 1

    def allocate(self, role: str, requested: int) -> int:
        size = -(-requested // 256) * 256
        while not any(room >= size for _, room in self.holes):
            self.extend(size)
        place = next(place for place, (_, room) in enumerate(self.holes) if room >= size)
        address, room = self.holes.pop(place)
        if room > size:
            self.holes.insert(place, (address + size, room - size))
        identity = self.next_id
        self.next_id += 1
        self.totals["requested"] += requested
        self.totals["allocated"] += size
        self.live[identity] = (ROLES.index(role), requested, size, address)
        self.event(0, ROLES.index(role), identity, requested, size, address)
        if self.totals["requested"] > self.peak_requested:
            self.peak_requested = self.totals["requested"]
            self.by_role_at_peak = {}
            for index, live_requested, *_ in self.live.values():
                name = ROLES[index]
                self.by_role_at_peak[name] = self.by_role_at_peak.get(name, 0) + live_requested
        return identity

    def free(self, identity: int) -> None:
        role, requested, size, address = self.live.pop(identity)
        self.totals["requested"] -= requested
        self.totals["allocated"] -= size
        self.event(1, role, identity, requested, size, address)
        self._give_back(address, size)

    def _give_back(self, address: int, size: int) -> None:
        """Neighbouring holes become one."""
        merged: list[tuple[int, int]] = []
        for hole in sorted([*self.holes, (address, size)]):
            if merged and sum(merged[-1]) == hole[0]:
                merged[-1] = (merged[-1][0], merged[-1][1] + hole[1])
            else:
                merged.append(hole)
        self.holes = merged


def record(batch: int, capacity: int, growth: bool, clock_ns: int | None, layers: int = 12) -> Recording:
    """A step of a made-up network: activations pile up forward and fall away backward."""
    run = Recording(capacity, growth, clock_ns)
    weights = [(64 << min(layer // 3, 4)) ** 2 * 36 + 13 for layer in range(layers)]
    for weight in weights:
        for role in ("weight", "optimizer_state"):
            run.allocate(role, weight)
    for step in range(1, WARMUP + MEASURED + 1):
        run.step, run.phase, run.op = step, 0, -1
        image = run.allocate("input", batch * 3 * 96 * 96 * 4)
        run.phase = 1
        kept = []
        for layer in range(layers):
            run.op = layer
            kept.append(run.allocate("activation", batch * 900_001 // (1 + layer // 3)))
            scratch = run.allocate("workspace", 3 * MIB + 77 * layer)
            run.free(scratch)
        run.phase = 2
        gradients = []
        upstream = run.allocate("activation_gradient", batch * 200_000)
        for layer in reversed(range(layers)):
            run.op = 2 * layers - 1 - layer
            scratch = run.allocate("workspace", 6 * MIB + 991 * layer)
            downstream = run.allocate("activation_gradient", batch * 900_001 // (1 + layer // 3))
            gradients.append(run.allocate("gradient", weights[layer]))
            for done in (scratch, upstream, kept.pop()):
                run.free(done)
            upstream = downstream
        run.free(upstream)
        run.phase = 3
        for place, gradient in enumerate(gradients):
            run.op = 2 * layers + place
            run.free(gradient)
        run.free(image)
    return run


def trace_of(run: Recording, cell: dict[str, Any], layers: int = 12) -> Trace:
    names = [f"layer{n // 3 + 1}.{n % 3}.conv" for n in range(layers)]
    backward = [f"{name}.backward" for name in reversed(names)]
    header = {
        "device": cell["device"],
        "rules": cell["rules"],
        "allocator": cell["allocator"],
        "workload": cell["workload"],
        "capacity_bytes": run.capacity,
        "kinds": KINDS,
        "roles": ROLES,
        "phases": PHASES,
    }
    return Trace(header, names + backward + [f"{name}.update" for name in reversed(names)], run.columns)


def write_trace(trace: Trace, path: Path) -> None:
    tables = {key: trace.header[key] for key in ("kinds", "roles", "phases")}
    with path.open("wb") as stream:
        writer = TraceWriter(stream, trace.header, **tables)
        writer.add_op_names(trace.op_names)
        writer.add(trace.columns)
        writer.finish()


def moments(run: Recording, rung: int) -> dict[str, int]:
    def peak(chosen: Any) -> int:
        return max((row[rung] for row in run.history if chosen(row[0])), default=0)

    return {
        "initial": [row for row in run.history if row[0] == 0][-1][rung],
        "after_step_1": [row for row in run.history if row[0] == 1][-1][rung],
        "warmup_peak": peak(lambda step: 1 <= step <= WARMUP),
        "steady_peak": peak(lambda step: step > WARMUP),
        "overall_peak": peak(lambda step: True),
    }


def memory_of(run: Recording, host: bool) -> dict[str, Any]:
    rungs = {f"{name}_bytes": moments(run, place) for place, name in enumerate(run.totals, start=1)}
    process = None
    if host:
        process = {moment: value + 190 * MIB for moment, value in rungs["reserved_bytes"].items()}
    return {
        **rungs,
        "process_bytes": process,
        "process_baseline_bytes": 150 * MIB if host else None,
        "phase_peaks": {},
        "requested_bytes_by_role_at_peak": run.by_role_at_peak,
        "internal_fragmentation": 0.0004,
        "external_fragmentation": 0.21 if run.growth else 0.05,
        "utilisation": rungs["allocated_bytes"]["overall_peak"] / rungs["reserved_bytes"]["overall_peak"],
        "lower_bound_bytes": int(rungs["requested_bytes"]["overall_peak"] * 0.97),
        "device_allocations_per_step": run.device_allocations,
        "device_frees_per_step": [0] * len(run.device_allocations),
    }
