"""Made-up nights: the figures of one real run, changed as a test needs them."""

from __future__ import annotations

import json
import random
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable

from conftest import COUNTING, TIMING, Headroom, Outcome, run_info, samples, suite_of

# One experiment that is counted and one that is timed.
SUITE = suite_of(
    "night",
    COUNTING | {"id": "counted"},
    TIMING | {"id": "timed", "device": "host(capacity=64MiB)", "measured_steps": 2, "blocks": 2},
)
COUNTED = "night/counted [bfc(growth=on)]"
TIMED = "night/timed [bfc(growth=on)]"
STEP_NS = 10_000_000
NOISE = 0.005

Change = Callable[[dict[str, Any]], None]


def name_of(sample: dict[str, Any]) -> str:
    return f"{sample['experiment']} [{sample['arm']}]"


def grow(cell: str, share: float) -> Change:
    """More reserved bytes in one cell, rounded up."""

    def change(sample: dict[str, Any]) -> None:
        if name_of(sample) == cell:
            moments = sample["memory"]["reserved_bytes"]
            for moment, value in moments.items():
                moments[moment] = value + -int(-value * share // 1)

    return change


def slow(cell: str, share: float) -> Change:
    def change(sample: dict[str, Any]) -> None:
        if name_of(sample) == cell:
            sample["step_time_ns"] = [int(time * (1 + share)) for time in sample["step_time_ns"]]

    return change


class Nights:
    """One machine's nights, each of which is added to the history and checked."""

    def __init__(self, headroom: Headroom, seed: int) -> None:
        self.headroom = headroom
        self.random = random.Random(seed)
        self.count = 0
        self.facts: dict[str, Any] = {}
        suite = headroom.write("night.toml", SUITE)
        done = headroom("run", suite, "--samples-only", "--seed", "1", "--out", "template")
        assert done.code == 0, done.errors
        (self.template,) = (headroom.place / "template").iterdir()

    def make(self, *changes: Change, only: Callable[[str], bool] = lambda cell: True) -> Path:
        """A run directory, judged: `only` chooses the cells that are in it."""
        self.count += 1
        started = datetime(2026, 1, 1, 2, tzinfo=timezone.utc) + timedelta(days=self.count)
        run = self.headroom.place / "runs" / f"{started:%Y%m%dT%H%M%SZ}-night"
        shutil.copytree(self.template, run)
        info = run_info(run)
        info.update(run_id=run.name, started=started.strftime("%Y-%m-%dT%H:%M:%SZ"), seed=self.count)
        info["headroom"]["commit"] = f"{self.count:040x}"
        info["machine"].update(self.facts)
        for experiment in info["experiments"]:
            experiment["arms"] = [a for a in experiment["arms"] if only(f"{experiment['id']} [{a['name']}]")]
        info["experiments"] = [experiment for experiment in info["experiments"] if experiment["arms"]]
        records = [record for record in samples(run) if only(name_of(record))]
        levels = {name_of(record): STEP_NS * (1 + self.random.gauss(0, NOISE)) for record in records}
        for record in records:
            record["cpu_wait_ns"] = 0
            record["probe"] = record["probe"] and {"before_gflops": 100.0, "after_gflops": 100.0}
            if record["cell"]["device_class"] == "host":
                record["step_time_ns"] = [int(levels[name_of(record)])] * 3
                for moment in record["memory"]["process_bytes"]:
                    record["memory"]["process_bytes"][moment] = 10**8
            for change in changes:
                change(record)
        (run / "run.json").write_text(json.dumps(info))
        (run / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        judged = self.headroom("verify", str(run))
        assert judged.code == 0, judged.errors
        return run

    def add(self, *changes: Change, store: str = "history", **choice: Any) -> Path:
        run = self.make(*changes, **choice)
        added = self.headroom("history", "add", str(run), "--store", store)
        assert added.code == 0, added.errors
        return run

    def check(self, *arguments: str) -> tuple[Outcome, dict[str, Any]]:
        outcome = self.headroom("history", "check", "--json", *arguments)
        return outcome, json.loads(outcome.output) if outcome.output else {}


def found(check: dict[str, Any], kind: str) -> set[tuple[str, str]]:
    return {(finding["what"], finding["metric"]) for finding in check["failures"] if finding["kind"] == kind}
