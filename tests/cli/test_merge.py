"""Shards divide a run without overlap, and merging them gives that run."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import Headroom, figures, run_info, samples

SEED = ["--seed", "11"]


def shard(headroom: Headroom, suite: str, part: str, *more: str) -> Path:
    out = "shard-" + part.replace("/", "-")
    outcome = headroom("run", suite, "--samples-only", "--out", out, "--shard", part, *(more or SEED))
    assert outcome.code == 0, outcome.errors
    (run,) = (headroom.place / out).iterdir()
    return run


def merged(headroom: Headroom) -> Path:
    return headroom.only_run()


@pytest.fixture
def whole(headroom: Headroom, counting: str) -> Path:
    assert headroom("run", counting, "--samples-only", "--out", "whole", *SEED).code == 0
    (run,) = (headroom.place / "whole").iterdir()
    return run


def test_merged_shards_are_the_whole_run(headroom: Headroom, counting: str, whole: Path) -> None:
    shards = [shard(headroom, counting, f"{number}/3") for number in (1, 2, 3)]
    outcome = headroom("merge", *map(str, reversed(shards)))
    assert outcome.code == 0, outcome.errors
    run = merged(headroom)
    assert Path(outcome.last_line) == run / "report.html"
    assert figures(run) == figures(whole)
    assert len(samples(run)) == len(samples(whole)) == run_info(run)["planned_samples"]
    assert {file.name for file in (run / "traces").iterdir()} == {file.name for file in (whole / "traces").iterdir()}
    assert run_info(run)["status"] == "finished"
    assert run_info(run)["argv"] == ["run", counting, "--samples-only", "--out", "shard-3-3", *SEED]


def test_all_arms_of_a_block_stay_in_one_shard(headroom: Headroom, counting: str) -> None:
    seed = random.randint(0, 2**32)
    seen: set[tuple[str, int]] = set()
    for number in (1, 2, 3, 4, 5):
        run = shard(headroom, counting, f"{number}/5", "--seed", str(seed))
        blocks: dict[tuple[str, int], set[str]] = {}
        for sample in samples(run):
            blocks.setdefault((sample["experiment"], sample["block"]), set()).add(sample["arm"])
        assert all(len(arms) == 3 for arms in blocks.values()), seed
        assert 1 <= len(blocks) <= 2, seed  # eight blocks in five parts
        assert not seen & blocks.keys(), seed
        seen |= blocks.keys()
    assert len(seen) == 8


def test_the_provenance_of_every_shard_is_kept(headroom: Headroom, counting: str) -> None:
    shards = [shard(headroom, counting, f"{number}/2") for number in (1, 2)]
    assert headroom("merge", *map(str, shards), "--samples-only").code == 0
    run = merged(headroom)
    records = run_info(run)["shards"]
    assert [record["run_id"] for record in records] == [path.name for path in shards]
    assert [record["shard"] for record in records] == [{"number": 1, "count": 2}, {"number": 2, "count": 2}]
    assert sum(record["samples"] for record in records) == len(samples(run))
    for path in shards:
        assert json.loads((run / "shards" / f"{path.name}.json").read_text()) == run_info(path)


def test_a_missing_shard_is_told_and_can_be_made_up_for(headroom: Headroom, counting: str, whole: Path) -> None:
    outcome = headroom("merge", str(shard(headroom, counting, "1/2")), "--samples-only")
    assert outcome.code == 0, outcome.errors
    run = merged(headroom)
    assert "Missing: shard 2 of 2." in outcome.output
    assert f"headroom run --resume runs/{run.name}" in outcome.output
    assert run_info(run)["status"] == "interrupted"
    outcome = headroom("run", "--resume", str(run), "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert figures(run) == figures(whole)


def changed(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    info = run_info(run)
    change(info)
    (run / "run.json").write_text(json.dumps(info))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda info: info.update(suite="other"), "the suite is 'counting' in one and 'other' in the other"),
        (lambda info: info.update(seed=12), "the seed is 11 in one and 12 in the other. Run every shard with the same --seed"),
        (lambda info: info["headroom"].update(executable_sha256="0"), "the programs differ"),
        (lambda info: info["machine"].update(cpu="abacus"), "and 'abacus' in the other. Run every shard on machines of one kind"),
        (lambda info: info["libraries"].update(zstd="0"), "the library zstd is"),
        (lambda info: info["experiments"][0].update(blocks=7), "their experiments differ (counting/small/"),
        (lambda info: info["shard"].update(count=3), "one is a shard of 2 parts, the other of 3"),
        (lambda info: info["shard"].update(number=1), "both are shard 1 of 2"),
        (lambda info: info.update(shard=None), "is not a shard"),
    ],
)
def test_what_does_not_belong_together_is_refused_with_the_reason(
    headroom: Headroom, counting: str, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    shards = [shard(headroom, counting, f"{number}/2") for number in (1, 2)]
    changed(shards[1], change)
    outcome = headroom("merge", *map(str, shards))
    assert outcome.code == 2
    assert told in outcome.errors
    assert shards[1].name in outcome.errors
    assert headroom.runs() == []


def test_machines_of_one_kind_may_differ_in_which_they_are(headroom: Headroom, counting: str) -> None:
    shards = [shard(headroom, counting, f"{number}/2") for number in (1, 2)]
    changed(shards[1], lambda info: info["machine"].update(hostname_hash="another", load_average_1m=9.0))
    assert headroom("merge", *map(str, shards), "--samples-only").code == 0
    assert run_info(merged(headroom))["shards"][1]["hostname_hash"] == "another"


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "1/2x", "/", "a/b", "-1/2"])
def test_a_shard_that_cannot_be_is_a_usage_error(headroom: Headroom, part: str) -> None:
    outcome = headroom("run", "smoke", "--seed", "1", f"--shard={part}")
    assert outcome.code == 2
    assert "write 2/4" in outcome.errors


def test_a_shard_needs_the_seed_that_all_share(headroom: Headroom) -> None:
    outcome = headroom("run", "smoke", "--shard", "1/2")
    assert outcome.code == 2
    assert "--seed" in outcome.errors
