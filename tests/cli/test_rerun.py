"""Blocks are added after a look only on request, nothing recorded is replaced, and verdicts say how
often the data were looked at."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import COUNTING, TIMING, Headroom, run_info, samples, suite_of

# One experiment of two identical configurations, and one of exact figures.
SUITE = suite_of("open", TIMING | {"allocator": ["malloc", "malloc"], "blocks": 2}, COUNTING | {"id": "counts"})


def settle(run: Path) -> None:
    """Records that say the machine was quiet, so that no pair is left out."""
    records = samples(run)
    for record in records:
        if record["probe"]:
            record.update(probe={"before_gflops": 100, "after_gflops": 100}, cpu_wait_ns=0)
    (run / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture
def undecided(headroom: Headroom) -> Path:
    """A run whose two pairs decide nothing."""
    assert headroom("run", headroom.write("open.toml", SUITE), "--max-pairs", "2", "--samples-only").code == 0
    settle(headroom.only_run())
    return headroom.only_run()


def comparison(run: Path, experiment: str, metric: str) -> dict[str, Any]:
    matrix = json.loads((run / "verdicts.json").read_text())["matrix"]
    (found,) = [entry["comparisons"][metric] for entry in matrix
                if entry["experiment"] == experiment and metric in entry["comparisons"]]
    return found


def test_what_is_inconclusive_gets_fresh_blocks_and_keeps_the_old(headroom: Headroom, undecided: Path) -> None:
    before = samples(undecided)
    outcome = headroom("run", "--resume", str(undecided), "--rerun", "inconclusive", "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert "open/times is inconclusive: 2 blocks more" in outcome.output
    assert "open/counts" not in outcome.output
    after = samples(undecided)
    assert after[: len(before)] == before
    fresh = after[len(before):]
    assert {sample["experiment"] for sample in fresh} == {"open/times"}
    known = {sample["block"] for sample in before if sample["experiment"] == "open/times"}
    assert not known & {sample["block"] for sample in fresh}
    (addition,) = run_info(undecided)["additions"]
    assert (addition["experiment"], addition["reason"], addition["blocks"]) == ("open/times", "inconclusive", 2)


def test_a_look_stands_with_every_comparison_it_touched(headroom: Headroom, undecided: Path) -> None:
    assert headroom("run", "--resume", str(undecided), "--rerun", "inconclusive", "--samples-only").code == 0
    assert headroom("verify", str(undecided)).code in (0, 12)
    assert comparison(undecided, "open/times", "steady_step_time_ns")["looks"] == 1
    assert comparison(undecided, "open/counts", "reserved_bytes.overall_peak")["looks"] == 0


def test_added_blocks_survive_being_interrupted(headroom: Headroom, undecided: Path) -> None:
    assert headroom("run", "--resume", str(undecided), "--rerun", "inconclusive", "--samples-only").code == 0
    whole = samples(undecided)
    file = undecided / "samples.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: random.randint(len(lines) - 4, len(lines) - 1)]))
    assert headroom("run", "--resume", str(undecided), "--samples-only").code == 0

    def places(records: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
        return {(record["experiment"], record["arm"], record["block"]) for record in records}

    assert places(whole) <= places(samples(undecided))
    assert len(run_info(undecided)["additions"]) == 1


def test_a_failed_sample_is_kept_beside_the_one_that_replaces_it(headroom: Headroom, undecided: Path) -> None:
    records = samples(undecided)
    records[0].update(status="crash", reason="made for tests", memory=None)
    place = records[0]["experiment"], records[0]["arm"], records[0]["block"]
    (undecided / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    outcome = headroom("run", "--resume", str(undecided), "--rerun", "failed", "--samples-only")
    assert outcome.code == 0, outcome.errors
    after = samples(undecided)
    assert after[: len(records)] == records
    fresh = after[len(records):]
    assert {sample["experiment"] for sample in fresh} == {place[0]}
    assert headroom("verify", str(undecided)).code in (0, 12)
    verdicts = json.loads((undecided / "verdicts.json").read_text())
    assert [(f["experiment"], f["arm"], f["block"]) for f in verdicts["failures"]] == [place]
    assert all(c["looks"] == 0 for entry in verdicts["matrix"] for c in entry["comparisons"].values())


def test_where_nothing_is_open_nothing_is_added(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    before = samples(headroom.only_run())
    outcome = headroom("run", "--resume", str(headroom.only_run()), "--rerun", "inconclusive", "--samples-only")
    assert outcome.code == 0, outcome.errors
    assert "Nothing of this run is inconclusive." in outcome.output
    assert samples(headroom.only_run()) == before


def test_rerun_wants_a_run_and_a_reason(headroom: Headroom, undecided: Path) -> None:
    assert headroom("run", "smoke", "--rerun", "failed").code == 2
    outcome = headroom("run", "--resume", str(undecided), "--rerun", "inconclusiv")
    assert outcome.code == 2
    assert "did you mean 'inconclusive'?" in outcome.errors


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Headroom:
    """Has a run of two claims, which tests judge."""
    headroom = Headroom(tmp_path_factory.mktemp("claims"))
    suite = headroom.write("claims.toml", 'name = "claims"\ndescription = "for tests"\nclaims = ["S02", "S03"]\nleave_out = ["virtual"]\n')
    assert headroom("run", suite, "--samples-only", "--filter", "experiment=*v100-16gb*").code == 0
    return headroom


def test_verify_tells_why_on_which_data_and_what_would_change_it(claims: Headroom) -> None:
    headroom, run = claims, str(claims.only_run())
    claim = json.loads((headroom.only_run() / "run.json").read_text())["claims"][0]
    outcome = headroom("verify", claim, run)
    assert outcome.code in (0, 12), outcome.errors
    verdicts = json.loads((headroom.only_run() / "verdicts.json").read_text())["claims"]
    (told,) = [entry for entry in verdicts if entry["id"] == claim]
    assert outcome.output.startswith(f"{claim} ({told['title']}): {told['verdict']}\n")
    for part in told["parts"]:
        for verdict in part["verdicts"]:
            assert f"why: {verdict['why']}" in outcome.output
            assert f"would change it: {verdict['would_change']}" in outcome.output
            for evidence in verdict["evidence"]:
                sweep = evidence["experiment"].partition("=")[0].rpartition("/")[0]
                assert sweep in outcome.output
    programs = headroom("verify", claim, run, "--json")
    assert json.loads(programs.output)["claims"] == [told]
    assert headroom("verify", claim, run, "--expect", told["verdict"]).code == outcome.code
    unknown = headroom("verify", claim.lower(), run)
    assert unknown.code == 2
    assert f"did you mean '{claim}'?" in unknown.errors


def test_verify_fails_where_a_verdict_is_not_the_expected_one(claims: Headroom) -> None:
    headroom, run = claims, str(claims.only_run())
    facts = json.loads(headroom("verify", run, "--json").output)["claims"]
    for claim in facts:
        other = "WEAKER" if claim["verdict"] != "WEAKER" else "STRONGER"
        outcome = headroom("verify", claim["id"], run, "--json", "--expect", other)
        assert outcome.code == 11
        assert outcome.errors.splitlines()[-1] == f"headroom: {claim['id']} is {claim['verdict']}, expected {other}"
        assert [told["id"] for told in json.loads(outcome.output)["claims"]] == [claim["id"]]
    assert headroom("verify", run, "--expect", "refuted").code == 2


def test_verify_names_no_claim_of_a_run_that_judges_none(headroom: Headroom, counting: str) -> None:
    assert headroom("run", counting, "--samples-only").code == 0
    outcome = headroom("verify", "S02", str(headroom.only_run()))
    assert outcome.code == 2
    assert "this run judges no claims" in outcome.errors
