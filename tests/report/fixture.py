"""A made-up run directory that fits the schema: for tests of the report only, marked SYNTHETIC.

Usable by hand: PYTHONPATH=. python3 tests/report/fixture.py DIRECTORY
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

from fixture_failure import memory_of_scattered, report_of, scattered
from fixture_recording import GIB, MEASURED, MIB, WARMUP, Recording, memory_of, record, trace_of, write_trace
from fixture_verdicts import MOMENTS, comparison_of, verdicts_of

BATCHES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128)


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
        name = f"traces/{len(self.samples):04d}.hrtrace"
        write_trace(trace_of(run, cell), self.directory / name)
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
            "throughput_samples_per_s": tuple(cell["batch"] / 0.48 / slow * f for f in (1, 0.98, 1.02)),
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
        oom, trace_file, memory = None, None, None
        if status == "oom":
            oom = {**report_of(), "allocator": cell["allocator"]}
            trace_file = f"traces/{len(self.samples):04d}.hrtrace"
            write_trace(scattered(), self.directory / trace_file)
            memory = memory_of_scattered()
        self.samples.append(
            sample_of(
                cell, experiment, arm, 0, status=status, reason=reason, oom=oom, trace_file=trace_file, memory=memory
            )
        )


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
        "cost": {
            "wall_s": 540.0,
            "steps_s": 300.0,
            "setup_s": 120.0,
            "process_s": 60.0,
            "probe_s": 30.0,
            "first_touch_s": 6.0,
            "recording": {
                "ns_per_event": 9.4,
                "bytes_per_event": 56.0,
                "share_of_step": 0.000052,
                "largest_share_of_step": 0.00031,
            },
        },
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
    small = cell_of("host(capacity=64MiB)", 64, "bfc(fraction=0.5)")
    fixture.missing("limits", "small", small, "oom", "18 MiB did not fit into 64 MiB")
    absent = cell_of("cuda", 64, "bfc")
    fixture.missing("limits", "gpu", absent, "unsupported", "this machine has no CUDA GPU; it needs one with a driver")
    verdicts = verdicts_of(fixture.matrix) if judged else None
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
