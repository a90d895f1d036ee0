"""The last screen of a run in a terminal: plain sentences, for claims that were decided and those not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fixture import run_of
from fixture_verdicts import claim_of, evidence_of, part_of, verdict_of

from reports.data.read import RunData
from reports.views.first_screen.closing import WIDTH, closing

GIB = 2.0**30


def closing_of(*claims: dict[str, Any], planned: int = 0, sensitivity: str = "sensitive") -> str:
    verdicts = {
        "claims": list(claims),
        "matrix": [],
        "calibration": {"status": "calibrated", "why": "Seldom.", "aa_comparisons": 40, "false_alarms": 1},
        "sensitivity": {"status": sensitivity, "why": "A wait of 6 % was not seen."},
    }
    return closing(RunData(Path("runs/one"), run_of(0) | {"planned_samples": planned}, [], verdicts))


def decided() -> dict[str, Any]:
    evidence = [evidence_of("S1/batch=1", "reserved_bytes.after_step_1", "B", (4 * GIB, 3 * GIB), 0)]
    part = part_of("so much less", "It is so.", (-0.62, -0.65, -0.58, -1), [verdict_of("meta", "REFUTED", "why", evidence)])
    return claim_of("S1", "Growth saves memory", "It says so.", "REFUTED", [part])


def undecided(name: str, word: str = "INCONCLUSIVE") -> dict[str, Any]:
    part = part_of("slower", "It is so.", (-0.08, -0.1, -0.06, -1), [verdict_of("meta", word, "why", [])])
    return claim_of(name, "Growth is slow", "It says so.", word, [part])


def test_what_was_decided_is_told_in_a_sentence_of_numbers() -> None:
    text = " ".join(closing_of(decided()).replace("\u202f", " ").split())
    assert "S1 REFUTED: Growth saves memory" in text
    assert "25.0 % lower than with preallocate" in text


def test_claims_that_were_not_decided_are_listed_with_the_command_that_measures_more() -> None:
    text = closing_of(decided(), undecided("S2"), undecided("S3"))
    assert "Not decided: S2, S3." in text
    assert "headroom run --resume runs/one --rerun inconclusive" in text


def test_a_run_that_decided_everything_asks_for_no_more() -> None:
    assert "--resume" not in closing_of(decided())


def test_a_run_that_is_not_complete_says_how_to_complete_it() -> None:
    text = closing_of(undecided("S2"), planned=10)
    assert "Complete the run: headroom run --resume runs/one" in text
    assert "--rerun" not in text


def test_claims_that_need_another_machine_are_apart_from_those_not_decided() -> None:
    assert "Not testable on this machine: S4." in closing_of(undecided("S4", "NOT-TESTABLE-HERE"))


def test_a_claim_about_another_machine_is_told_by_what_was_measured_here_instead() -> None:
    evidence = [evidence_of("S5/batch=1", "reserved_bytes.after_step_1", "B", (4 * GIB, 3 * GIB), 0)]
    verdicts = [verdict_of("cuda", "NOT-TESTABLE-HERE", "no driver", []), verdict_of("host", "REFUTED", "why", evidence)]
    part = part_of("so much less", "It is so.", (-0.62, -0.65, -0.58, -1), verdicts)
    text = " ".join(closing_of(claim_of("S5", "It saves", "So.", "NOT-TESTABLE-HERE", [part])).split())
    assert "S5 NOT-TESTABLE-HERE: It saves Measured elsewhere, with" in text and "25.0" in text
    assert "Not testable on this machine" not in text


def test_a_failed_check_of_the_instrument_gives_its_reason() -> None:
    assert "A wait of 6 % was not seen." in closing_of(decided(), sensitivity="insensitive")
    assert "A wait of 6 % was not seen." not in closing_of(decided())


def test_no_line_is_wider_than_a_terminal() -> None:
    names = [undecided(f"S{number}") for number in range(60)]
    assert max(len(line) for line in closing_of(decided(), *names).splitlines()) <= WIDTH


def test_a_run_without_verdicts_has_nothing_to_tell() -> None:
    assert closing(RunData(Path("runs/one"), run_of(0), [], None)) == ""
