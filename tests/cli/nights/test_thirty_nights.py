"""Thirty simulated nights: noise, another machine, a slowdown of 5 %, 1 % more bytes, an acceptance."""

from __future__ import annotations

import random
from typing import Any

import pytest
from conftest import Headroom
from made_up_nights import COUNTED, TIMED, Nights, found, grow, slow

NIGHTS = 30
OTHER_MACHINE = 9  # the first night on it
SLOWDOWN = 19
MORE_BYTES = 26
ACCEPTED = 28  # after this night's check
SLOW_MACHINE = 0.3


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[int, dict[str, Any]]]:
    """Exit code and findings of every night's check."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    nights = Nights(Headroom(tmp_path_factory.mktemp("nights")), seed)
    checks = {}
    for night in range(1, NIGHTS + 1):
        changes = []
        if night >= OTHER_MACHINE:
            nights.facts = {"cpu": "another", "hostname_hash": "another"}
            changes += [slow(cell, SLOW_MACHINE) for cell in (TIMED, "night/timed [malloc]")]
        if night >= SLOWDOWN:
            changes.append(slow(TIMED, 0.05))
        if night >= MORE_BYTES:
            changes.append(grow(COUNTED, 0.01))
        run = nights.make(*changes)
        # A machine that goes by one name for the history, whatever its host is called.
        assert nights.headroom("history", "add", str(run), "--machine", "farm").code == 0
        outcome, check = nights.check()
        checks[night] = (outcome.code, check)
        if night == ACCEPTED:
            for cell, reason in ((COUNTED, "wider blocks"), (TIMED, "checks its input now")):
                done = nights.headroom("history", "accept", cell, "--reason", reason)
                assert done.code == 0, done.errors
    return checks


def test_plain_noise_is_silent(story: dict[int, Any]) -> None:
    for night in range(1, SLOWDOWN):
        code, check = story[night]
        assert (code, check["failures"]) == (0, []), f"night {night}"


def test_another_machine_is_marked_and_no_regression(story: dict[int, Any]) -> None:
    assert story[OTHER_MACHINE - 1][1]["marks"] == []
    code, check = story[OTHER_MACHINE]
    assert code == 0
    (mark,) = check["marks"]
    assert mark["night_id"] == check["night_id"]
    assert "the processor" in [difference["what"] for difference in mark["differences"]]


def test_a_slowdown_of_five_percent_is_found_with_the_night_it_came(story: dict[int, Any]) -> None:
    code, check = story[MORE_BYTES - 1]
    assert code == 10
    assert found(check, "level") == {(TIMED, "steady_step_time_ns")}
    (finding,) = check["failures"]
    # The noise may move it by a night.
    assert SLOWDOWN - 1 <= int(finding["since_commit"], 16) <= SLOWDOWN + 1
    assert int(finding["previous_commit"], 16) == int(finding["since_commit"], 16) - 1


def test_one_percent_more_bytes_is_found_the_same_night(story: dict[int, Any]) -> None:
    assert found(story[MORE_BYTES - 1][1], "exact") == set()
    code, check = story[MORE_BYTES]
    assert code == 10
    assert (COUNTED, "reserved_bytes.steady_peak") in found(check, "exact")
    assert {cell for cell, _ in found(check, "exact")} == {COUNTED}
    commits = {(finding["previous_commit"], finding["since_commit"])
               for finding in check["failures"] if finding["kind"] == "exact"}
    assert commits == {(f"{MORE_BYTES - 1:040x}", f"{MORE_BYTES:040x}")}


def test_what_is_not_accepted_fails_every_night_and_is_told_once_per_cell_and_metric(story: dict[int, Any]) -> None:
    for night in range(MORE_BYTES, ACCEPTED + 1):
        code, check = story[night]
        assert code == 10
        places = [(finding["what"], finding["metric"]) for finding in check["failures"]]
        assert len(places) == len(set(places))


def test_what_was_accepted_is_silent(story: dict[int, Any]) -> None:
    for night in range(ACCEPTED + 1, NIGHTS + 1):
        code, check = story[night]
        assert (code, check["failures"]) == (0, []), f"night {night}"
