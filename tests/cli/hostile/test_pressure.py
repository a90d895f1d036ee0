"""Under load from other programs, times are left out or stay undecided; bytes do not change."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import COUNTING, TIMING, Headroom, samples, suite_of

# malloc twice is one cell: nothing differs but the machine. bfc reserves many times as much.
NETWORK = {"workload": "resnet(batch=4,depth=18,width=8)"}
SUITE = suite_of(
    "pressed",
    TIMING | NETWORK | {"allocator": ["malloc", "malloc"], "measured_steps": 20, "blocks": 6},
    COUNTING | NETWORK | {"id": "bytes", "allocator": ["malloc", "bfc(growth=off)"]},
)
SAME, LARGER = "malloc#2", "bfc(growth=off)"


class Load:
    """Twice as many busy processes as there are cores, while it is on."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        for _ in range(2 * len(os.sched_getaffinity(0))):
            self.processes.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()


@pytest.fixture
def load() -> Iterator[Load]:
    load = Load()
    yield load
    load.stop()


def crowded(sample: dict[str, Any]) -> bool:
    return sample["cpu_wait_ns"] > 0.1 * sum(sample["step_time_ns"])


def judged(headroom: Headroom) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], Path]:
    """Samples that were timed, and the comparisons by arm, of the only run."""
    run = headroom.only_run()
    outcome = headroom("verify", str(run))
    assert outcome.code in (0, 12), outcome.errors
    taken = [sample for sample in samples(run) if sample["experiment"] == "pressed/times"]
    if any(sample["cpu_wait_ns"] is None for sample in taken):
        pytest.skip("this kernel does not count how long threads wait for a core")
    matrix = json.loads((run / "verdicts.json").read_text())["matrix"]
    return taken, {entry["arm"]: entry["comparisons"] for entry in matrix}, run


def require_larger(comparisons: dict[str, dict[str, Any]]) -> None:
    bytes_of = comparisons[LARGER]["reserved_bytes.overall_peak"]
    assert bytes_of["exact"]
    assert bytes_of["verdict"] == "WORSE"


def test_a_machine_that_is_never_free_says_nothing_about_times(headroom: Headroom, load: Load) -> None:
    load.start()
    suite = headroom.write("pressed.toml", SUITE)
    assert headroom("run", suite, "--samples-only", "--max-pairs", "2").code == 0
    taken, comparisons, run = judged(headroom)
    assert all(crowded(sample) for sample in taken)
    times = comparisons[SAME]["steady_step_time_ns"]
    assert times["verdict"] == "INCONCLUSIVE"
    assert times["reason_code"] == "no_pairs"
    assert times["excluded_pairs"] == len({sample["block"] for sample in taken})
    why = json.loads((run / "verdicts.json").read_text())["exclusions"][0]["why"]
    assert "other programs had the cores" in why
    require_larger(comparisons)


def test_spells_of_load_cost_pairs_and_never_a_wrong_verdict(headroom: Headroom, load: Load) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    over = threading.Event()

    def come_and_go() -> None:
        while not over.wait(chance.uniform(0.2, 1.5)):
            load.start()
            over.wait(chance.uniform(0.2, 1.5))
            load.stop()

    visitor = threading.Thread(target=come_and_go)
    visitor.start()
    try:
        outcome = headroom("run", headroom.write("pressed.toml", SUITE), "--samples-only")
    finally:
        over.set()
        visitor.join()
    assert outcome.code == 0, outcome.errors
    taken, comparisons, _ = judged(headroom)
    blocks: dict[int, list[bool]] = defaultdict(list)
    for sample in taken:
        blocks[sample["block"]].append(crowded(sample))
    times = comparisons[SAME]["steady_step_time_ns"]
    assert times["n_pairs"] + times["excluded_pairs"] == len(blocks), f"seed {seed}"
    assert times["excluded_pairs"] >= sum(map(any, blocks.values())), f"seed {seed}"
    assert times["verdict"] not in ("WORSE", "BETTER"), f"seed {seed}: {times}"
    require_larger(comparisons)
