"""A second stage is added as planned, once, and only because of the pilot's noise."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from conftest import TIMING, Headroom, run_info, samples, suite_of

SUITE = suite_of("staged", TIMING | {"blocks": 10, "timeout_s": 120})


@pytest.fixture
def pilot(headroom: Headroom) -> Path:
    """A run of ten pairs that may have eleven."""
    outcome = headroom("run", headroom.write("staged.toml", SUITE), "--samples-only", "--max-pairs", "11")
    assert outcome.code == 0, outcome.errors
    return headroom.only_run()


def put_times(run: Path, spread: float, effect: float) -> None:
    """Keeps only the pilot, with these step times, as if nothing had disturbed the machine."""
    recorded = [sample for sample in samples(run) if sample["block"] < 10]
    with (run / "samples.jsonl").open("w") as file:
        for sample in recorded:
            factor = random.uniform(1 - spread, 1 + spread) * (effect if sample["arm"] == "malloc" else 1)
            sample["step_time_ns"] = [int(1e8 * factor)] * len(sample["step_time_ns"])
            file.write(json.dumps(sample | {"probe": None, "cpu_wait_ns": 0}) + "\n")
    info = run_info(run)
    info["additions"] = []
    (run / "run.json").write_text(json.dumps(info))


def stages(run: Path) -> list[tuple[int, int]]:
    """(first block, blocks) of each addition for the pilot's noise. Other blocks may have been added
    in place of disturbed ones."""
    additions = [each for each in run_info(run)["additions"] if each["reason"] == "dispersion"]
    return [(each["first_block"], each["blocks"]) for each in additions]


def test_a_noisy_pilot_gets_more_pairs_once_up_to_the_cap(headroom: Headroom, pilot: Path) -> None:
    put_times(pilot, spread=0.3, effect=1)
    outcome = headroom("run", "--resume", str(pilot), "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert "the pilot of 10 pairs" in outcome.errors
    assert "with the limit of 11, 1 are added" in outcome.errors
    assert {sample["block"] for sample in samples(pilot)} >= set(range(11))
    assert stages(pilot) == [(10, 1)]
    assert headroom("run", "--resume", str(pilot), "--samples-only").code == 0
    assert stages(pilot) == [(10, 1)]


def test_a_quiet_pilot_gets_none_however_large_the_effect(headroom: Headroom, pilot: Path) -> None:
    put_times(pilot, spread=0.001, effect=3)
    outcome = headroom("run", "--resume", str(pilot), "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert len(samples(pilot)) == 20
    assert run_info(pilot)["additions"] == []


def test_a_dry_run_tells_pilot_and_cap(headroom: Headroom) -> None:
    outcome = headroom("run", headroom.write("staged.toml", SUITE), "--dry-run", "--max-pairs", "30")
    assert "a pilot of 10 pairs; up to 30 where its noise asks for more" in outcome.output
