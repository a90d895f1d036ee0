"""Google Benchmark's JSON: one benchmark per cell of an experiment, one repetition per sample, so
that compare.py sees the samples and not a summary of them.

Only samples that were timed are in it. The format demands a CPU time, which is not measured per
step: it repeats the real time, and the context says so.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from reports.data.devices import simulated
from reports.data.read import Changes, RunData

_COUNTERS = ("requested_bytes", "allocated_bytes", "reserved_bytes")


def write(data: RunData, _changes: Changes | None = None) -> str:
    controls = data.controls
    samples = [sample for sample in data.samples if sample["experiment"] not in controls]
    timed = [sample for sample in samples if is_timed(sample)]
    repetitions = Counter(_name(sample) for sample in timed)
    seen: Counter[str] = Counter()
    benchmarks = []
    for sample in timed:
        name = _name(sample)
        benchmarks.append(_benchmark(sample, name, repetitions[name], seen[name]))
        seen[name] += 1
    return json.dumps({"context": _context(data, len(samples) - len(timed)), "benchmarks": benchmarks}, indent=1) + "\n"


def is_timed(sample: dict[str, Any]) -> bool:
    """A simulated device computes nothing, so its times are not times of training."""
    return (
        sample["status"] == "ok"
        and not simulated(sample["cell"])
        and len(sample["step_time_ns"]) > sample["warmup_steps"]
    )


def _name(sample: dict[str, Any]) -> str:
    return f"{sample['experiment']}/{sample['arm']}"


def _benchmark(sample: dict[str, Any], name: str, repetitions: int, index: int) -> dict[str, Any]:
    steady = sample["step_time_ns"][sample["warmup_steps"] :]
    per_step = sum(steady) / len(steady)
    record = {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": repetitions,
        "repetition_index": index,
        "threads": 1,
        "iterations": len(steady),
        "real_time": per_step,
        "cpu_time": per_step,
        "time_unit": "ns",
        "label": sample["cell"]["cell_id"],
    }
    if sample["throughput_samples_per_s"] is not None:
        record["items_per_second"] = sample["throughput_samples_per_s"]
    if sample["memory"]:
        for kind in _COUNTERS:
            record[f"peak_{kind}"] = sample["memory"][kind]["overall_peak"]
    return record


def _context(data: RunData, left_out: int) -> dict[str, Any]:
    run = data.run
    return {
        "date": run["started"],
        "host_name": run["machine"]["hostname_hash"],
        "executable": f"headroom {run['headroom']['version']}, commit {run['headroom']['commit'] or 'not known'}",
        "num_cpus": run["machine"]["cores"],
        "library_build_type": run["headroom"]["build_type"],
        "headroom_run": run["run_id"],
        "headroom_time": "real_time is the mean over the steps after warm-up of one sample",
        "headroom_cpu_time": "not measured: cpu_time repeats real_time",
        "headroom_samples_without_times": left_out,
    }
