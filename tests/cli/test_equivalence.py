"""Exact metrics, and the verdicts that rest on them, are the same bit for bit however a run is made:
without interruption, killed and resumed, in shards, or repeated."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import Headroom, Outcome, run_info, samples

SEED = ["--seed", "1"]  # as the smoke fixture has it


def exact(run: Path) -> dict[tuple[str, str, int], Any]:
    """Everything in the planned samples that does not depend on the clock; a slow machine adds blocks."""
    figures = {}
    planned = {experiment["id"]: experiment["blocks"] for experiment in run_info(run)["experiments"]}
    for sample in samples(run):
        if sample["block"] >= planned[sample["experiment"]]:
            continue
        memory = sample["memory"]
        if memory is not None:
            memory = {key: value for key, value in memory.items() if not key.startswith("process_")}
        # Losses are left out: sums over threads may round differently.
        figures[sample["experiment"], sample["arm"], sample["block"]] = [
            memory, *(sample[key] for key in ("order_index", "seed", "status", "cell", "lowering_rules", "oom",
                                              "samples_per_step", "flops_per_step", "parameter_count")),
        ]
    return figures


def exact_verdicts(run: Path) -> list[Any]:
    verdicts = json.loads((run / "verdicts.json").read_text())
    found: list[Any] = []
    for entry in verdicts["matrix"]:
        for metric, comparison in entry["comparisons"].items():
            if comparison["exact"] or comparison["reason_code"] in ("out_of_memory", "unavailable"):
                found.append((entry["experiment"], entry["arm"], entry["status"], metric, comparison))
    assert any(item[-1]["exact"] for item in found)
    return found


@pytest.fixture
def at_one_go(smoke: tuple[Outcome, Path]) -> Path:
    outcome, run = smoke
    assert outcome.code == 0, outcome.errors
    return run


def require_same(run: Path, other: Path) -> None:
    assert exact(run) == exact(other)
    assert exact_verdicts(run) == exact_verdicts(other)


def test_a_second_run_agrees_with_the_first(headroom: Headroom, at_one_go: Path) -> None:
    outcome = headroom("run", "smoke", *SEED, "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert headroom("verify", str(headroom.only_run())).code in (0, 12)
    require_same(headroom.only_run(), at_one_go)


def test_a_run_that_was_killed_again_and_again_agrees_with_one_at_one_go(headroom: Headroom, at_one_go: Path) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    planned = run_info(at_one_go)["planned_samples"]
    kills = 0
    for number, done in enumerate(sorted(chance.sample(range(1, planned - 1), 3))):
        process = headroom.start("run", *(["smoke", *SEED] if number == 0 else ["--resume", str(headroom.only_run())]),
                                 "--progress", "plain")
        assert process.stderr is not None
        recorded = len(samples(headroom.only_run())) if number else 0
        for line in process.stderr:
            if not line[0].isdigit():
                continue
            recorded += 1
            if recorded >= done:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        if process.returncode == 0:
            break  # it was done before the signal came
        assert process.returncode == -signal.SIGKILL, f"seed {seed}"
        kills += 1
    assert kills > 0, f"seed {seed}: nothing was killed"
    outcome = headroom("run", "--resume", str(headroom.only_run()), "--samples-only")
    assert outcome.code == 0, f"seed {seed}: {outcome.errors}"
    assert headroom("verify", str(headroom.only_run())).code in (0, 12)
    require_same(headroom.only_run(), at_one_go)


def test_two_merged_shards_agree_with_a_run_at_one_go(headroom: Headroom, at_one_go: Path) -> None:
    for number in (1, 2):
        outcome = headroom("run", "smoke", *SEED, "--shard", f"{number}/2", "--out", "shards", "--samples-only")
        assert outcome.code == 0, outcome.errors
    shards = sorted(str(path) for path in (headroom.place / "shards").iterdir())
    outcome = headroom("merge", *shards)
    assert outcome.code == 0, outcome.errors
    require_same(headroom.only_run(), at_one_go)
