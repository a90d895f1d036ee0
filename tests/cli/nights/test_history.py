"""The history of nights: what is kept, what is accepted, what fails a night."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Headroom
from made_up_nights import COUNTED, Change, Nights, found, grow, name_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Nights(Headroom(tmp_path_factory.mktemp("template")), 1).template


@pytest.fixture
def nights(headroom: Headroom, template: Path) -> Nights:
    nights = Nights.__new__(Nights)
    nights.headroom, nights.template = headroom, template
    nights.count, nights.facts, nights.random = 0, {}, random.Random(1)
    return nights


def content(store: Path) -> dict[str, str]:
    return {str(file.relative_to(store)): file.read_text() for file in sorted(store.rglob("*.json*"))}


def claim(verdict: str) -> dict[str, Any]:
    return {
        "id": "X01", "title": "t", "statement": "s", "source": {"title": "t", "section": "s", "date": None},
        "subject": {"engine": "e", "device_class": "meta", "text": "t"}, "parts": [], "verdict": verdict,
        "verdict_by_device": [{"device_class": "meta", "relation": "own", "verdict": verdict, "why": "w"}],
        "why": "w", "instead": "i", "pitfalls": [], "limits": [], "command": "c",
    }


def rewrite_verdicts(run: Path, change: Change) -> None:
    verdicts = json.loads((run / "verdicts.json").read_text())
    change(verdicts)
    (run / "verdicts.json").write_text(json.dumps(verdicts))


def night_with_verdict(nights: Nights, verdict: str) -> tuple[int, dict[str, Any]]:
    run = nights.make()
    rewrite_verdicts(run, lambda verdicts: verdicts["claims"].append(claim(verdict)))
    assert nights.headroom("history", "add", str(run)).code == 0
    outcome, check = nights.check()
    return outcome.code, check


def test_a_night_is_kept_once_however_often_it_is_added(nights: Nights) -> None:
    run = nights.add()
    store = nights.headroom.place / "history"
    before = content(store)
    again = nights.headroom("history", "add", str(run))
    assert (again.code, "was there already" in again.output) == (0, True)
    assert content(store) == before


def test_one_byte_more_fails_the_night_and_fewer_become_what_is_held(nights: Nights) -> None:
    def add_bytes(count: int) -> Change:
        def change(sample: dict[str, Any]) -> None:
            if name_of(sample) == COUNTED:
                sample["memory"]["reserved_bytes"]["steady_peak"] += count
        return change

    nights.add()
    nights.add(add_bytes(1))
    outcome, check = nights.check()
    assert (outcome.code, found(check, "exact")) == (10, {(COUNTED, "reserved_bytes.steady_peak")})
    nights.add(add_bytes(-512))
    assert nights.check()[0].code == 0
    nights.add()
    outcome, check = nights.check()
    assert (outcome.code, found(check, "exact")) == (10, {(COUNTED, "reserved_bytes.steady_peak")})
    assert "+512 bytes" in check["failures"][0]["sentence"]


def test_a_result_that_is_gone_fails_the_night(nights: Nights) -> None:
    def fail(sample: dict[str, Any]) -> None:
        if name_of(sample) == COUNTED:
            sample.update(status="oom", reason="too little")

    nights.add()
    nights.add(fail)
    outcome, check = nights.check()
    assert outcome.code == 10
    (finding,) = check["failures"]
    assert (finding["kind"], finding["what"]) == ("lost", COUNTED)
    assert "ran out of memory" in finding["sentence"]


def test_an_exact_figure_on_which_processes_disagree_fails_the_night(nights: Nights) -> None:
    def vary(sample: dict[str, Any]) -> None:
        if name_of(sample) == COUNTED:
            sample["memory"]["reserved_bytes"]["initial"] += 512 * sample["block"]

    nights.add()
    nights.add(vary)
    outcome, check = nights.check()
    assert (outcome.code, found(check, "exact")) == (10, {(COUNTED, "reserved_bytes.initial")})
    assert "differs between processes" in check["failures"][0]["sentence"]


def test_missing_and_new_cells_are_listed_until_the_missing_are_accepted(nights: Nights) -> None:
    nights.add(only=lambda cell: cell != COUNTED)
    nights.add()
    outcome, check = nights.check()
    assert (outcome.code, check["new"], check["missing"]) == (0, [COUNTED], [])
    for _ in range(2):
        nights.add(only=lambda cell: cell != COUNTED)
        outcome, check = nights.check()
        assert (outcome.code, check["new"], check["missing"]) == (0, [], [COUNTED])
    assert nights.headroom("history", "accept", COUNTED, "--reason", "nobody asked for it").code == 0
    assert nights.check()[1]["missing"] == []


def test_a_verdict_fails_only_where_it_differs_from_the_accepted_one(nights: Nights) -> None:
    assert night_with_verdict(nights, "REPRODUCED")[0] == 0
    code, check = night_with_verdict(nights, "REFUTED")
    assert code == 11
    assert [finding["what"] for finding in check["failures"]] == ["X01 on meta"]
    accepted = nights.headroom("history", "accept", "X01", "--reason", "the old allocator leaked")
    assert accepted.code == 0, accepted.errors
    assert night_with_verdict(nights, "REFUTED")[0] == 0
    assert night_with_verdict(nights, "REPRODUCED")[0] == 11


def test_a_night_that_cannot_decide_takes_nothing_back(nights: Nights) -> None:
    assert night_with_verdict(nights, "INCONCLUSIVE")[0] == 0
    assert night_with_verdict(nights, "REFUTED")[0] == 0
    code, check = night_with_verdict(nights, "INCONCLUSIVE")
    assert code == 0
    assert [note["what"] for note in check["notes"]] == ["X01 on meta"]
    assert night_with_verdict(nights, "REPRODUCED")[0] == 11


def test_a_night_out_of_calibration_says_so_and_bytes_still_count(nights: Nights) -> None:
    def distrusted(*changes: Change) -> int:
        run = nights.make(*changes)
        rewrite_verdicts(run, lambda verdicts: verdicts["sensitivity"].update(status="insensitive", why="Missed."))
        assert nights.headroom("history", "add", str(run)).code == 0
        outcome, _ = nights.check()
        return outcome.code

    nights.add()
    assert distrusted() == 12
    assert distrusted(grow(COUNTED, 0.01)) == 10


def test_the_issue_names_commits_and_commands_that_work(nights: Nights) -> None:
    nights.add()
    nights.add(grow(COUNTED, 0.01))
    assert nights.headroom("history", "check", "--issue", "issue.md").code == 10
    issue = (nights.headroom.place / "issue.md").read_text()
    assert f"{1:040x}"[:12] + ".." + f"{2:040x}"[:12] in issue
    assert COUNTED in issue
    (command,) = [line for line in issue.splitlines() if "headroom history accept" in line]
    words = shlex.split(command.split("`")[1])
    assert nights.headroom(*words[1:]).code == 0
    assert nights.check()[0].code == 0


def test_programs_and_reports_get_what_the_schema_says(nights: Nights) -> None:
    nights.add()
    _, check = nights.check()
    assert check["kind"] == "check"
    (night,) = check["night_ids"]
    assert (Path(check["store"]) / "nights" / f"{night}.json").exists()


def test_an_earlier_night_can_be_checked_by_its_run(nights: Nights) -> None:
    nights.add()
    worse = nights.add(grow(COUNTED, 0.01))
    nights.add()
    assert nights.check()[0].code == 0
    assert nights.check(str(worse))[0].code == 10
    assert nights.check(worse.name)[0].code == 10


def test_merging_stores_is_their_union_whatever_the_order(nights: Nights) -> None:
    place = nights.headroom.place
    nights.add(store="one")
    nights.facts = {"hostname_hash": "elsewhere"}
    nights.add(store="two")
    nights.add(store="two")
    for target, other in (("a", "one"), ("b", "two")):
        shutil.copytree(place / other, place / target)
    assert nights.headroom("history", "merge", "two", "--store", "a").code == 0
    assert nights.headroom("history", "merge", "one", "--store", "b").code == 0
    a, b = content(place / "a"), content(place / "b")
    assert len(a) == 4
    assert sorted(a.pop("accepted.jsonl").splitlines()) == sorted(b.pop("accepted.jsonl").splitlines())
    assert a == b
    again = nights.headroom("history", "merge", "two", "--store", "a")
    assert "0 nights and 0 acceptances" in again.output


def test_a_torn_line_is_left_out_and_what_follows_stays_whole(nights: Nights) -> None:
    nights.add()
    file = nights.headroom.place / "history" / "accepted.jsonl"
    whole = file.read_text()
    file.write_text(whole + whole.splitlines()[0][:40])
    assert nights.check()[0].code == 0
    nights.add()
    assert nights.headroom("history", "accept", COUNTED, "--reason", "r").code == 0
    lines = file.read_text().splitlines()
    assert "\n".join(lines[:-1]) + "\n" == whole
    assert json.loads(lines[-1])["reason"] == "r"


def test_whenever_it_is_killed_the_store_is_whole_and_adding_again_completes_it(nights: Nights) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    store = nights.headroom.place / "history"
    nights.add()
    for _ in range(8):
        run = nights.make(grow(COUNTED, -0.001 * nights.count))
        adding = nights.headroom.start("history", "add", str(run))
        time.sleep(chance.uniform(0, 0.15))
        adding.send_signal(signal.SIGKILL)
        adding.communicate()
        assert nights.check()[0].code == 0
        assert nights.headroom("history", "add", str(run)).code == 0
        assert nights.check(run.name)[0].code == 0
    for file in sorted(store.rglob("*.jsonl")):
        for line in file.read_text().splitlines():
            json.loads(line)
    assert len(list((store / "nights").glob("*.json"))) == 9


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check"], "headroom history add"),
        (["check", "--store", "nowhere"], "nowhere"),
        (["add", "nowhere"], "not a run directory"),
        (["accept", "X01"], "--reason"),
        (["merge", "nowhere"], "nowhere"),
        (["forget"], "history"),
        ([], "history"),
    ],
)
def test_what_cannot_be_done_says_what_to_mend(headroom: Headroom, arguments: list[str], says: str) -> None:
    outcome = headroom("history", *arguments)
    assert outcome.code == 2
    assert says in outcome.errors


def test_names_that_do_not_exist_get_the_nearest(nights: Nights) -> None:
    nights.add()
    outcome = nights.headroom("history", "accept", COUNTED.replace("counted", "countd"), "--reason", "r")
    assert outcome.code == 2
    assert COUNTED in outcome.errors


def test_an_unfinished_or_unjudged_run_is_not_kept(nights: Nights) -> None:
    run = nights.make()
    (run / "verdicts.json").unlink()
    assert "headroom verify" in nights.headroom("history", "add", str(run)).errors
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(info | {"status": "interrupted"}))
    (run / "verdicts.json").write_text((nights.make() / "verdicts.json").read_text())
    outcome = nights.headroom("history", "add", str(run))
    assert (outcome.code, "--resume" in outcome.errors) == (2, True)


def test_a_damaged_night_is_named(nights: Nights) -> None:
    nights.add()
    (night,) = (nights.headroom.place / "history" / "nights").iterdir()
    night.write_text(night.read_text()[:100])
    outcome = nights.headroom("history", "check")
    assert (outcome.code, night.name in outcome.errors) == (2, True)
