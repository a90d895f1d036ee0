"""The configurations of a timed block take turns: their processes live at the same time, and one works."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMING, Headroom, samples, suite_of
from test_rerun import settle



def suite(headroom: Headroom, blocks: int = 1, steps: int = 8, more: tuple[str, ...] = ()) -> str:
    experiment = TIMING | {"allocator": [*TIMING["allocator"], *more], "measured_steps": steps, "blocks": blocks}
    return headroom.write("turns.toml", suite_of("turns", experiment))


def run(headroom: Headroom, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
    blocks = options.get("blocks", 1)  # and no more in place of those that something disturbed
    outcome = headroom("run", suite(headroom, **options), "--samples-only", "--max-pairs", str(blocks), *arguments)
    assert outcome.code == 0, outcome.errors
    return samples(headroom.only_run())


def test_each_round_has_one_turn_of_every_arm_and_every_second_round_is_mirrored(headroom: Headroom) -> None:
    taken = run(headroom)
    arm_of = {number: sample["arm"] for sample in taken for number in sample["turns"]["numbers"]}
    assert sorted(arm_of) == list(range(len(arm_of)))
    order = [arm_of[number] for number in sorted(arm_of)]
    rounds = [order[i : i + 2] for i in range(0, len(order), 2)]
    assert len(rounds) >= 4
    assert all(len(set(both)) == 2 for both in rounds)
    assert all(first == second[::-1] for first, second in zip(rounds[::2], rounds[1::2]))


def test_the_turns_hold_every_measured_step(headroom: Headroom) -> None:
    for sample in run(headroom):
        turns = sample["turns"]
        assert len(turns["numbers"]) == math.ceil(8 / turns["steps"])
        assert len(sample["step_time_ns"]) == 9
        assert sample["why_no_turns"] is None


def test_an_arm_that_runs_out_of_memory_leaves_the_turns_and_the_other_goes_on(headroom: Headroom) -> None:
    taken = {sample["arm"]: sample for sample in run(headroom, more=("limit(1MiB)|arena",))}
    assert taken.pop("limit(1MiB)|arena")["status"] == "oom"
    assert [len(sample["step_time_ns"]) for sample in taken.values()] == [9, 9]


def test_arms_that_do_not_fit_together_run_one_after_the_other_and_say_why(headroom: Headroom) -> None:
    free_kib = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines()
                    if line.startswith("MemAvailable"))
    device = f"device=host(capacity={free_kib // 1024 * 4 // 10}MiB)"
    taken = run(headroom, "-a", device)
    assert [sample["turns"] for sample in taken] == [None, None]
    assert all("half of the free memory" in sample["why_no_turns"] for sample in taken)


def children_of(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def both_children_of(process: int) -> list[int]:
    """The two processes of a block once both live."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(found := children_of(process)) == 2:
            return found
        time.sleep(0.01)
    raise AssertionError("the two processes never lived at the same time")


def test_a_process_that_is_killed_fails_with_its_reason_and_leaves_the_other_to_finish(headroom: Headroom) -> None:
    process = headroom.start("run", suite(headroom, steps=400), "--samples-only", "--max-pairs", "1")
    os.kill(both_children_of(process.pid)[0], signal.SIGKILL)
    process.communicate(timeout=120)
    killed, fine = sorted(samples(headroom.only_run()), key=lambda sample: sample["status"] == "ok")
    assert killed["status"] == "crash"
    assert "SIGKILL" in killed["reason"]
    assert fine["status"] == "ok"
    assert len(fine["step_time_ns"]) == 401


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_a_run_that_is_stopped(headroom: Headroom, number: signal.Signals) -> None:
    process = headroom.start("run", suite(headroom, steps=4000), "--samples-only")
    children = both_children_of(process.pid)
    process.send_signal(number)
    process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while any(lives(child) for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lives(process: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_estimate_is_of_the_median_log_ratios_of_steps_with_the_same_number(headroom: Headroom) -> None:
    run(headroom, blocks=6)
    settle(headroom.only_run())
    assert headroom("verify", str(headroom.only_run())).code in (0, 12)
    steps = {(s["arm"], s["block"]): s["step_time_ns"][1:] for s in samples(headroom.only_run())}
    ratios = [
        statistics.median(
            math.log(growth / malloc)
            for growth, malloc in zip(steps["bfc(growth=on)", block], steps["malloc", block], strict=True)
        )
        for block in range(6)
    ]
    walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(ratios, 2)]
    matrix = json.loads((headroom.only_run() / "verdicts.json").read_text())["matrix"]
    (found,) = [entry["comparisons"]["steady_step_time_ns"] for entry in matrix if entry["comparisons"]]
    assert found["n_pairs"] == 6
    assert found["theta"] == pytest.approx(statistics.median(walsh))
