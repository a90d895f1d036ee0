"""A made-up run directory that fits the schema: for tests of the report only, marked SYNTHETIC.

Usable by hand: python3 tests/report/fixture.py DIRECTORY
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
BATCHES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128)
MOMENTS = ("initial", "after_step_1", "steady_peak")


@dataclass
class Recording:
    """Events of one made-up run, and the figures a ledger would take from them."""

    capacity: int
    growth: bool
    clock_ns: int | None  # per event; None: a device without a clock
    columns: dict[str, list[int]] = field(default_factory=dict)
    live: dict[int, tuple[int, int, int]] = field(default_factory=dict)
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

    def __post_init__(self) -> None:
        names = ("kind", "role", "phase", "stream", "id", "op", "step", "requested_bytes", "size_bytes", "address", "time_ns")
        self.columns = {name: [] for name in names}

    def event(self, kind: int, role: int, identity: int, requested: int, size: int) -> None:
        self.time += self.clock_ns or 0
        row = (kind, role, self.phase, 0, identity, self.op, self.step, requested, size, 0, self.time)
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
        self.event(2, ROLES.index("workspace"), self.next_segment, size, size)
        self.next_segment += 1

    def allocate(self, role: str, requested: int) -> int:
        size = -(-requested // 256) * 256
        while self.totals["allocated"] + size > self.totals["reserved"]:
            self.extend(size)
        identity = self.next_id
        self.next_id += 1
        self.totals["requested"] += requested
        self.totals["allocated"] += size
        self.live[identity] = (ROLES.index(role), requested, size)
        self.event(0, ROLES.index(role), identity, requested, size)
        if self.totals["requested"] > self.peak_requested:
            self.peak_requested = self.totals["requested"]
            self.by_role_at_peak = {}
            for index, live_requested, _ in self.live.values():
                name = ROLES[index]
                self.by_role_at_peak[name] = self.by_role_at_peak.get(name, 0) + live_requested
        return identity

    def free(self, identity: int) -> None:
        role, requested, size = self.live.pop(identity)
        self.totals["requested"] -= requested
        self.totals["allocated"] -= size
        self.event(1, role, identity, requested, size)


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


def trace_of(run: Recording, cell: dict[str, Any], layers: int = 12) -> dict[str, Any]:
    names = [f"layer{n // 3 + 1}.{n % 3}.conv" for n in range(layers)]
    backward = [f"{name}.backward" for name in reversed(names)]
    return {
        "schema_version": "1.0",
        "header": {
            "device": cell["device"],
            "rules": cell["rules"],
            "allocator": cell["allocator"],
            "workload": cell["workload"],
            "capacity_bytes": run.capacity,
        },
        "op_names": names + backward + [f"{name}.update" for name in reversed(names)],
        "kinds": KINDS,
        "roles": ROLES,
        "phases": PHASES,
        "columns": run.columns,
    }


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


def cell_of(device: str, batch: int, allocator: str, **changes: Any) -> dict[str, Any]:
    workload = f"resnet(batch={batch},depth=18)"
    cell = {
        "cell_id": f"{workload}/{device}/{allocator}",
        "workload": workload,
        "batch": batch,
        "device": device,
        "device_class": device.partition("(")[0],
        "rules": "dense" if device.startswith("meta") else "onednn",
        "allocator": allocator,
        "execution": "last_use",
        "pipeline": "direct",
        "optimizer": "sgd",
        "warmup_steps": WARMUP,
        "measured_steps": MEASURED,
        "accumulation_steps": 1,
        "checkpointing": None,
        "precision": "f32",
        "pruning": None,
        "distribution": None,
    }
    return {**cell, **changes}


def sample_of(cell: dict[str, Any], experiment: str, arm: str, block: int, **changes: Any) -> dict[str, Any]:
    sample = {
        "schema_version": "1.0",
        "kind": "sample",
        "experiment": experiment,
        "arm": arm,
        "block": block,
        "order_index": 0,
        "pair_id": f"{experiment}#{block}",
        "cell": cell,
        "status": "ok",
        "reason": None,
        "seed": 7 + block,
        "started": f"2001-01-01T00:{block:02d}:00Z",
        "lowering_rules": "onednn(synthetic)" if cell["device_class"] == "host" else "dense",
        "warmup_steps": WARMUP,
        "measured_steps": MEASURED,
        "step_time_ns": [],
        "stall_time_ns": [],
        "minor_faults": [],
        "setup_ns": 0,
        "device_setup_ns": 0,
        "throughput_samples_per_s": None,
        "samples_per_step": cell["batch"],
        "flops_per_step": 2.1e9 * cell["batch"],
        "parameter_count": 11_173_962,
        "loss": [],
        "held_out_accuracy": None,
        "memory": None,
        "witness": None,
        "oom": None,
        "probe": None,
        "recording_ns_per_event": None,
        "trace_file": None,
    }
    return {**sample, **changes}


class Fixture:
    """Collects samples, evidence and matrix entries, then writes the directory."""

    def __init__(self, directory: Path, seed: int = 1) -> None:
        self.directory = directory
        self.random = random.Random(seed)
        self.samples: list[dict[str, Any]] = []
        self.matrix: list[dict[str, Any]] = []
        (directory / "traces").mkdir(parents=True, exist_ok=True)

    def trace(self, run: Recording, cell: dict[str, Any]) -> str:
        name = f"traces/{len(self.samples):04d}.json.gz"
        text = json.dumps(trace_of(run, cell)).encode()
        (self.directory / name).write_bytes(gzip.compress(text, mtime=0))
        return name

    def meta(self, experiment: str, arm: str, cell: dict[str, Any], growth: bool, capacity: int) -> Recording:
        run = record(cell["batch"], capacity, growth, None)
        memory = memory_of(run, host=False)
        for block in range(2):
            trace_file = self.trace(run, cell) if block == 0 else None
            self.samples.append(
                sample_of(cell, experiment, arm, block, memory=memory, trace_file=trace_file)
            )
        self.enter(experiment, arm, cell, memory, 2, {})
        return run

    def host(self, experiment: str, arm: str, cell: dict[str, Any], growth: bool, slow: float) -> None:
        run = record(cell["batch"], 4 * GIB, growth, clock_ns=900_000)
        memory = memory_of(run, host=True)
        for block in range(10):
            times = []
            for step in range(1, WARMUP + MEASURED + 1):
                first = 1.9 if growth and step == 1 else 1.25 if step == 1 else 1
                times.append(int(480e6 * slow * first * math.exp(self.random.gauss(0, 0.02))))
            self.samples.append(
                sample_of(
                    cell,
                    experiment,
                    arm,
                    block,
                    order_index=block % 2,
                    step_time_ns=times,
                    stall_time_ns=[900_000] * len(times),
                    minor_faults=[12_000, 3] + [0] * (len(times) - 2),
                    setup_ns=740_000_000,
                    device_setup_ns=190_000_000 if not growth else 2_000_000,
                    throughput_samples_per_s=MEASURED * cell["batch"] / (sum(times[WARMUP:]) / 1e9),
                    loss=[0.7 - 0.03 * step for step in range(len(times))],
                    held_out_accuracy=0.61,
                    memory=memory,
                    witness={
                        "heap_live_bytes": 41 * MIB,
                        "heap_peak_bytes": 44 * MIB,
                        "heap_allocations_per_step": 1312,
                    },
                    probe={"before_gflops": 480.0 + block, "after_gflops": 478.5},
                    recording_ns_per_event=9.0,
                    trace_file=self.trace(run, cell) if block == 0 else None,
                )
            )
        extra = {
            "steady_step_time_ns": (480e6 * slow, 472e6 * slow, 489e6 * slow),
            "first_steps_time_ns": (480e6 * slow * (2.9 if growth else 2.25),) * 3,
            "steady_device_allocations_per_step": (0, 0, 0),
            "throughput_samples_per_s": (cell["batch"] / 0.48 / slow,) * 3,
        }
        self.enter(experiment, arm, cell, memory, 10, extra)

    def enter(
        self,
        experiment: str,
        arm: str,
        cell: dict[str, Any],
        memory: dict[str, Any],
        samples: int,
        extra: dict[str, tuple[float, float, float]],
    ) -> None:
        values: dict[str, float] = {}
        intervals: dict[str, Any] = {}
        for rung in ("reserved_bytes", "allocated_bytes", "requested_bytes"):
            for moment in (*MOMENTS, "overall_peak"):
                value = memory[rung][moment]
                values[f"{rung}.{moment}"], intervals[f"{rung}.{moment}"] = value, [value, value]
        for name, (value, low, high) in extra.items():
            values[name], intervals[name] = value, [low, high]
        first = next((entry for entry in self.matrix if entry["experiment"] == experiment), None)
        comparisons = {}
        if first is not None:
            for name, value in values.items():
                if value == 0:
                    continue
                theta = math.log(value / first["values"][name])
                comparisons[name] = comparison_of(theta, spread=0.01 if name in extra else 0.0)
        self.matrix.append(
            {
                "experiment": experiment,
                "arm": arm,
                "cell": cell,
                "status": "ok",
                "reason": None,
                "samples": samples,
                "values": values,
                "intervals": intervals,
                "baseline_arm": first["arm"] if first else None,
                "comparisons": comparisons,
            }
        )

    def missing(self, experiment: str, arm: str, cell: dict[str, Any], status: str, reason: str) -> None:
        self.matrix.append(
            {
                "experiment": experiment,
                "arm": arm,
                "cell": cell,
                "status": status,
                "reason": reason,
                "samples": 1,
                "values": {},
                "intervals": {},
                "baseline_arm": None,
                "comparisons": {},
            }
        )
        oom = None
        if status == "oom":
            oom = {
                "requested_bytes": 123_456_789,
                "capacity_bytes": 256 * MIB,
                "reserved_bytes": 250 * MIB,
                "allocated_bytes": 180 * MIB,
                "free_bytes": 70 * MIB,
                "largest_free_bytes": 31 * MIB,
                "allocator": cell["allocator"],
            }
        self.samples.append(sample_of(cell, experiment, arm, 0, status=status, reason=reason, oom=oom))


def comparison_of(theta: float, spread: float, word: str = "") -> dict[str, Any]:
    exact = spread == 0
    word = word or ("SAME" if abs(theta) < 0.03 else "WORSE" if theta > 0 else "BETTER")
    return {
        "estimator": "exact" if exact else "hodges_lehmann",
        "scale": "log_ratio",
        "theta": theta,
        "effect": math.expm1(theta),
        "ci90": None if exact else [theta - spread, theta + spread],
        "ci95": None if exact else [theta - 1.3 * spread, theta + 1.3 * spread],
        "n_pairs": 1 if exact else 10,
        "excluded_pairs": 0,
        "delta": 0.01 if exact else 0.03,
        "mde": None if exact else 0.02,
        "p": None,
        "p_adj": None,
        "exact": exact,
        "verdict": word,
        "reason_code": "synthetic",
        "aa_false_alarm_rate": None,
    }


def evidence_of(
    experiment: str, metric: str, unit: str, values: tuple[float, float], spread: float, **changes: Any
) -> dict[str, Any]:
    simulated = "host" not in experiment
    item = {
        "experiment": experiment,
        "point": experiment.partition("=")[2],
        "metric": metric,
        "unit": unit,
        "device": "meta(card=synthetic)" if simulated else "host(capacity=4GiB)",
        "device_class": "meta" if simulated else "host",
        "simulated": simulated,
        "baseline_arm": "preallocate",
        "treatment_arm": "growth",
        "baseline_value": values[0],
        "treatment_value": values[1],
        "comparison": comparison_of(math.log(values[1] / values[0]), spread, "REFUTED"),
        "why": "synthetic",
    }
    return {**item, **changes}


def bound_of(experiment: str, metric: str, value: float) -> dict[str, Any]:
    """Evidence on one arm's own value, which nothing is compared with."""
    comparison = {**comparison_of(0, 0, "REFUTED"), "scale": "difference", "theta": value, "effect": None}
    return evidence_of(experiment, metric, "1", (1, 1), 0, baseline_arm=None, baseline_value=None,
                       treatment_value=value, comparison=comparison)


def absent(item: dict[str, Any]) -> dict[str, Any]:
    """The same evidence where no GPU is."""
    nothing = {**item["comparison"], "theta": None, "effect": None, "ci90": None, "ci95": None, "exact": False}
    return {
        **item,
        "experiment": item["experiment"].replace("host", "cuda"),
        "device": "cuda",
        "device_class": "cuda",
        "baseline_value": None,
        "treatment_value": None,
        "comparison": {**nothing, "verdict": "NOT-TESTABLE-HERE"},
        "why": "this machine has no CUDA GPU.",
    }


def part_of(
    name: str,
    text: str,
    claimed: tuple[float | None, float | None, float | None, int],
    verdicts: list[dict[str, Any]],
    judge: str = "ratio",
) -> dict[str, Any]:
    names = ("value", "low", "high", "direction")
    return {"name": name, "text": text, "judge": judge, "claimed": dict(zip(names, claimed)), "verdicts": verdicts}


def verdict_of(device_class: str, word: str, why: str, evidence: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    verdict = {
        "device_class": device_class,
        "subject": f"Headroom on {device_class}",
        "relation": "analogue" if device_class == "host" else "own",
        "simulated": device_class == "meta",
        "verdict": word,
        "why": why,
        "would_change": "Conditions stated in the source: the size depends on them.",
        "holds_for": None,
        "evidence": evidence,
    }
    return {**verdict, **changes}


def claim_of(identity: str, title: str, statement: str, word: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": identity,
        "title": title,
        "statement": statement,
        "source": {"title": "A synthetic source", "section": "§1.3", "date": "2001-01-01"},
        "subject": {"engine": "TensorFlow", "device_class": "cuda", "text": "TensorFlow on a CUDA GPU"},
        "parts": parts,
        "verdict": word,
        "verdict_by_device": [
            {
                "device_class": verdict["device_class"],
                "relation": verdict["relation"],
                "verdict": verdict["verdict"],
                "why": verdict["why"],
            }
            for verdict in parts[0]["verdicts"]
        ],
        "why": "SYNTHETIC. What growth saves before the first step depends on the card and the moment, "
        "not on the network: the claimed figure fits one batch size and no other.",
        "instead": "SYNTHETIC. Limit the pool to what the largest step needs; growth only helps when a second "
        "process shares the card.",
        "pitfalls": ["The moment of measurement decides the figure.", "Preallocation is itself the remedy for holes."],
        "limits": ["Workspaces of the original library are not part of the simulated step."],
        "command": f"headroom verify {identity}",
    }


def verdicts_of(fixture: Fixture) -> dict[str, Any]:
    figures = {(entry["experiment"], entry["arm"]): entry["values"] for entry in fixture.matrix}
    swept = [experiment for experiment, arm in figures if experiment.startswith("S02/") and arm == "growth"]

    def compare(experiment: str, metric: str, spread: float = 0, arm: str = "growth") -> dict[str, Any]:
        values = figures[experiment, "preallocate"][metric], figures[experiment, arm][metric]
        unit = "ns" if metric.endswith("_ns") else "B"
        return evidence_of(experiment, metric, unit, values, spread, treatment_arm=arm)

    def sweep(metrics: tuple[str, ...]) -> list[dict[str, Any]]:
        return [compare(experiment, metric) for metric in metrics for experiment in swept]

    moments = tuple(f"{rung}_bytes.{moment}" for rung in ("reserved", "allocated") for moment in MOMENTS)
    s02 = claim_of(
        "S02",
        "Growth mode starts with 62 % less GPU memory",
        "With memory growth, training ResNet-50 holds 62 % less GPU memory in its initial phase.",
        "CONDITIONAL",
        [
            part_of(
                "less is held at the start",
                "Before and after the first step, the allocator holds less with growth than with pre-allocation.",
                (None, None, None, -1),
                [verdict_of("meta", "REPRODUCED", "Holds at all points.", sweep(moments[:1]))],
            ),
            part_of(
                "62 % less",
                "The saving is 62 %, at whichever moment of the start the source may mean.",
                (-0.62, -0.658, -0.581, -1),
                [
                    verdict_of(
                        "meta",
                        "CONDITIONAL",
                        "Holds at some points; the claimed share is met in the middle of the sweep only.",
                        sweep(moments),
                        holds_for="v100 batch 32…64 (reserved_bytes.after_step_1)",
                    )
                ],
            ),
        ],
    )
    times = ("steady_step_time_ns", "first_steps_time_ns")
    on_host = [compare("S03/host", metric, 0.012) for metric in times]
    allocations = bound_of("S03/host", "steady_device_allocations_per_step", 0)
    control = [compare("S03/host", times[0], 0.02, arm="malloc")]
    here = "Steady steps take the same time; only the first steps are slower."
    gone = "No comparison has a result: this machine has no CUDA GPU."
    s03 = claim_of(
        "S03",
        "Growth mode trains 8 % slower, for its frequent allocations",
        "With memory growth, training is about 8 % slower, because device memory is allocated again and again.",
        "NOT-TESTABLE-HERE",
        [
            part_of(
                name,
                text,
                claimed,
                [
                    verdict_of("cuda", "NOT-TESTABLE-HERE", gone, [absent(item) for item in evidence]),
                    verdict_of("host", word, here, evidence),
                ],
                judge,
            )
            for name, text, claimed, word, evidence, judge in (
                ("slower", "A step takes longer with growth.", (None, None, None, 1), "CONDITIONAL", on_host, "ratio"),
                ("by 8 %", "It takes 8.7 % longer.", (0.087, 0.043, 0.13, 1), "REFUTED", on_host, "ratio"),
                (
                    "for frequent allocations",
                    "After warm-up, growth still allocates device memory at least once a step.",
                    (None, 1, None, 1),
                    "REFUTED",
                    [allocations],
                    "bound",
                ),
                (
                    "control: an allocation per tensor",
                    "Where every tensor is a device allocation, steps do take longer.",
                    (None, None, None, 1),
                    "REPRODUCED",
                    control,
                    "ratio",
                ),
            )
        ],
    )
    return {
        "schema_version": "1.0",
        "kind": "verdicts",
        "headline": "SYNTHETIC: growth mode saves memory only before the first step, and costs no steady speed.",
        "surprises": [
            "SYNTHETIC: the saving of growth mode shrinks from 96 % at batch 1 to nothing at batch 128.",
            "SYNTHETIC: steady steps are equally fast; all of the cost lies in step 1.",
            "SYNTHETIC: reserved memory under growth passes what the step needs by a third.",
        ],
        "counts": {"CONDITIONAL": 1, "NOT-TESTABLE-HERE": 1},
        "claims": [s02, s03],
        "matrix": fixture.matrix,
        "calibration": {
            "status": "not yet calibrated",
            "aa_comparisons": 12,
            "false_alarms": 1,
            "why": "12 of at least 40 A/A comparisons so far.",
        },
        "exclusions": [{"experiment": "S03/host", "block": 4, "why": "machine probe at 71 % of the best"}],
        "failures": [
            {
                "experiment": "limits",
                "arm": "small",
                "block": 0,
                "status": "oom",
                "reason": "123,456,789 bytes did not fit into 256 MiB",
            }
        ],
    }


def run_of(samples: int) -> dict[str, Any]:
    return {
        "schema_version": "1.0",
        "kind": "run",
        "run_id": "SYNTHETIC-20010101-000000",
        "suite": "synthetic",
        "argv": ["headroom", "run", "synthetic", "-a", "allocator=bfc(growth=on)"],
        "seed": 7,
        "started": "2001-01-01T00:00:00Z",
        "finished": "2001-01-01T00:09:00Z",
        "status": "finished",
        "headroom": {
            "version": "0.1.0",
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "dirty": False,
            "compiler": "synthetic 1.0",
            "build_type": "release",
            "flags": "-O2",
            "cuda": "absent",
        },
        "libraries": {"oneDNN": "0.0.0 (synthetic)"},
        "machine": {
            "hostname_hash": "00000000",
            "cpu": "Synthetic CPU",
            "cores": 2,
            "governor": None,
            "ram_bytes": 24 * GIB,
            "kernel": "0.0.0-synthetic",
            "os": "Synthetic OS",
            "transparent_hugepages": "madvise",
            "load_average_1m": 0.2,
            "gpu": None,
            "gpu_driver": None,
        },
        "environment": {"OMP_NUM_THREADS": "2"},
        "environment_id": "synthetic",
        "data": [{"path": "data/synthetic.bin", "sha256": "0" * 64, "bytes": 30_730_000, "origin": "synthetic"}],
        "best_probe_gflops": 501.0,
        "planned_samples": samples,
    }


def write_fixture(
    directory: Path, seed: int = 1, batches: tuple[int, ...] = BATCHES, *, judged: bool = True
) -> Path:
    """Writes a complete synthetic run and returns its directory."""
    fixture = Fixture(directory, seed)
    for card, capacity, tried in (("v100", 2 * GIB, batches), ("a100", 8 * GIB, batches[::3])):
        for batch in tried:
            experiment = f"S02/{card}/batch={batch}"
            device = f"meta(card={card})"
            spec = "bfc(growth={},reserve=" + ("1050MiB)" if card == "v100" else "1536MiB)")
            fixture.meta(experiment, "preallocate", cell_of(device, batch, spec.format("off")), False, capacity)
            fixture.meta(experiment, "growth", cell_of(device, batch, spec.format("on")), True, capacity)
    host = "host(capacity=4GiB)"
    fixture.host("S03/host", "preallocate", cell_of(host, 16, "bfc(growth=off)"), False, 1.0)
    fixture.host("S03/host", "growth", cell_of(host, 16, "bfc(growth=on)"), True, 1.006)
    fixture.host("S03/host", "malloc", cell_of(host, 16, "malloc"), True, 1.31)
    small = cell_of("host(capacity=256MiB)", 64, "bfc(fraction=0.5)")
    fixture.missing("limits", "small", small, "oom", "123,456,789 bytes did not fit into 256 MiB")
    absent = cell_of("cuda", 64, "bfc")
    fixture.missing("limits", "gpu", absent, "unsupported", "this machine has no CUDA GPU; it needs one with a driver")
    verdicts = verdicts_of(fixture) if judged else None
    write_files(directory, run_of(len(fixture.samples)), fixture.samples, verdicts)
    return directory


def write_files(
    directory: Path, run: dict[str, Any], samples: list[dict[str, Any]], verdicts: dict[str, Any] | None
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(json.dumps(run))
    (directory / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    if verdicts is not None:
        (directory / "verdicts.json").write_text(json.dumps(verdicts))


if __name__ == "__main__":
    print(write_fixture(Path(sys.argv[1])))
