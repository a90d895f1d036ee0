"""The first screen has one sentence about each claim, made from its evidence and never contradicting it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from fixture import cell_of, run_of
from fixture_verdicts import absent, bound_of, claim_of, comparison_of, evidence_of, part_of, verdict_of

from reports.data.read import RunData
from reports.views.first_screen.findings import Finding, build_findings
from reports.views.page import Page

HELD = "reserved_bytes.after_step_1"
GIB = 2.0**30


def findings(*claims: dict[str, Any], matrix: list[dict[str, Any]] | None = None) -> list[Finding]:
    verdicts = {"claims": list(claims), "matrix": matrix or []}
    return build_findings(Page(RunData(Path("nowhere"), run_of(0), [], verdicts)))


def claim(word: str, *parts: dict[str, Any], name: str = "S1") -> dict[str, Any]:
    return claim_of(name, "A claim", "It says so.", word, list(parts))


def held(*values: tuple[float, float], word: str = "REFUTED") -> list[dict[str, Any]]:
    found = [evidence_of(f"S1/batch={place}", HELD, "B", value, 0) for place, value in enumerate(values)]
    for item in found:
        item["comparison"]["verdict"] = word
    return found


def ratio(evidence: list[dict[str, Any]], word: str = "REFUTED", **changes: Any) -> dict[str, Any]:
    return part_of("so much less", "It is so.", (-0.62, -0.65, -0.58, -1), [verdict_of("meta", word, "why", evidence, **changes)])


def sentence(part: dict[str, Any], word: str = "REFUTED") -> str:
    (finding,) = findings(claim(word, part))
    return finding.sentence.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([(4 * GIB, 3 * GIB)], "25.0 % lower than with preallocate"),
        ([(4 * GIB, 3 * GIB), (4 * GIB, 1 * GIB)], "25.0 % lower (batch 0) to 75.0 % lower (batch 1) than with preallocate"),
        ([(4 * GIB, 4 * GIB), (4 * GIB, 1 * GIB)], "from the same (batch 0) to 75.0 % lower (batch 1) than with preallocate"),
        ([(1 * GIB, 16 * GIB)], "16.0× as high as with preallocate"),
        ([(4 * GIB, 4 * GIB)], "the same as with preallocate"),
        ([(4 * GIB, 3 * GIB), (4 * GIB, 5 * GIB)], "from 25.0 % lower (batch 0) to 25.0 % higher (batch 1) than with preallocate"),
        ([(1 * GIB, 2 * GIB), (1 * GIB, 16 * GIB)], "100 % higher (batch 0) to 16.0× as high (batch 1) as with preallocate"),
    ],
)
def test_the_whole_range_that_was_measured_is_told_with_its_places(values: list[tuple[float, float]], words: str) -> None:
    assert sentence(ratio(held(*values))).endswith(f": with growth, reserved memory after step 1 was {words}.")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("yes no", "As claimed (62.0 % lower) at 1 of 2 points: "),
        ("yes yes", "As claimed (62.0 % lower) at both points: "),
        ("yes yes yes", "As claimed (62.0 % lower) at all 3 points: "),
        ("no no", "Not as claimed (62.0 % lower), at none of 2 points: "),
        ("yes", "As claimed (62.0 % lower): "),
        ("no", "Not as claimed (62.0 % lower): "),
        ("open", "Undecided whether as claimed (62.0 % lower): "),
        ("open open", "Undecided whether as claimed (62.0 % lower): "),
        ("no open", "Not as claimed (62.0 % lower), at none of 2 points, 1 undecided: "),
        ("yes open", "As claimed (62.0 % lower) at 1 of 2 points, 1 undecided: "),
    ],
)
def test_what_was_claimed_and_how_often_it_was_found_stand_first(found: str, words: str) -> None:
    of = {"yes": "REPRODUCED", "no": "REFUTED", "open": "INCONCLUSIVE"}
    evidence = held(*[(4 * GIB, 3 * GIB)] * len(found.split()))
    for answer, item in zip(found.split(), evidence):
        item["comparison"]["verdict"] = of[answer]
    assert sentence(ratio(evidence, "CONDITIONAL")).startswith(words + "with growth")


def test_points_are_told_apart_by_experiment_and_by_what_is_swept() -> None:
    evidence = held((4 * GIB, 3 * GIB)) + held((4 * GIB, 1 * GIB))
    evidence[1]["experiment"] = "S1/other/batch=0"
    assert "25.0 % lower (S1) to 75.0 % lower (other)" in sentence(ratio(evidence))


def test_names_of_variants_are_told_as_words() -> None:
    evidence = [{**item, "treatment_arm": "one_of_four"} for item in held((4 * GIB, 3 * GIB))]
    assert "with one of four, reserved" in sentence(ratio(evidence))


def test_a_single_estimate_that_is_not_exact_has_its_interval() -> None:
    evidence = [evidence_of("S1/host", HELD, "B", (4 * GIB, 3 * GIB), 0.01)]
    assert "than with preallocate (95 % interval" in sentence(ratio(evidence))


def test_of_several_devices_the_one_that_decided_is_told() -> None:
    there = verdict_of("meta", "REPRODUCED", "why", held((4 * GIB, 1 * GIB)))
    here = verdict_of("host", "REFUTED", "why", held((4 * GIB, 4 * GIB)), relation="own")
    assert "the same as" in sentence({**ratio([]), "verdicts": [there, here]}, "REFUTED")


def test_the_framework_itself_is_told_before_our_own_engine_which_stands_beside_it() -> None:
    part = ratio(held((4 * GIB, 1 * GIB)))
    own_engine = part["verdicts"][0]
    framework = verdict_of(
        "virtual", "REFUTED", "why", held((4 * GIB, 3 * GIB)), subject="TensorFlow 9.9 on a virtual card"
    )
    part["verdicts"] = [own_engine, framework]
    (finding,) = findings(claim("REFUTED", part))
    assert finding.basis == "virtual"
    assert finding.sentence.replace("\u202f", " ").startswith(
        "TensorFlow 9.9 on a virtual card: Not as claimed (62.0 % lower): with growth, reserved memory after step 1 was 25.0 % lower"
    )
    assert "Headroom on meta (simulated): Not as claimed" in finding.elsewhere
    assert "75.0" in finding.elsewhere


def test_points_without_a_figure_are_counted_apart() -> None:
    evidence = held((4 * GIB, 3 * GIB)) + [absent(item) for item in held((1, 1), (1, 1))]
    assert sentence(ratio(evidence)).endswith("; 2 more gave no figure.")


def test_a_value_that_is_compared_with_nothing_is_told_as_it_is() -> None:
    evidence = [bound_of("S1/meta", "steady_device_allocations_per_step", 0.5)]
    part = part_of("often", "It is often.", (None, 1, None, 1), [verdict_of("meta", "REFUTED", "why", evidence)], "bound")
    assert sentence(part) == "Not as claimed (at least 1): with growth, device allocations per step after warm-up was 0.5."


def test_without_any_figure_the_reason_is_told() -> None:
    part = ratio([absent(item) for item in held((1, 1))], "NOT-TESTABLE-HERE")
    (finding,) = findings({**claim("NOT-TESTABLE-HERE", part), "why": "no card is here"})
    assert finding.sentence == "No card is here." and finding.picture is None


def test_a_part_without_figures_is_not_told_in_place_of_one_that_has_them() -> None:
    left_out = ratio([absent(item) for item in held((1, 1))], "INCONCLUSIVE")
    (finding,) = findings(claim("REFUTED", left_out, ratio(held((4 * GIB, 3 * GIB)))))
    assert "25.0\u202f% lower" in finding.sentence and finding.picture is not None


def test_of_a_claim_that_holds_in_part_the_parts_are_named() -> None:
    evidence = held((4 * GIB, 3 * GIB))
    holds, fails = ratio(evidence, "REPRODUCED"), {**ratio(evidence), "name": "much less"}
    (finding,) = findings(claim("CONDITIONAL", holds, fails))
    assert finding.parts == [("Holds", ["so much less"]), ("Does not hold", ["much less"])]
    (finding,) = findings(claim("REPRODUCED", holds, {**holds, "name": "as well"}))
    assert finding.parts == []


def test_another_engine_that_differs_is_told_beside_it() -> None:
    own = verdict_of("meta", "REFUTED", "why", held((4 * GIB, 4 * GIB)))
    other = verdict_of("meta", "REPRODUCED", "why", held((4 * GIB, 1 * GIB)), relation="analogue")
    part = {**ratio([]), "verdicts": [own, other]}
    (finding,) = findings(claim("REFUTED", part))
    assert "75.0" in finding.elsewhere and "the same as" in finding.sentence


def test_what_does_not_hold_comes_first() -> None:
    part = ratio(held((4 * GIB, 3 * GIB)))
    words = ["NOT-TESTABLE-HERE", "REPRODUCED", "CONDITIONAL", "REFUTED"]
    found = findings(*(claim(word, part, name=f"S{place}") for place, word in enumerate(words)))
    assert [finding.word.word for finding in found] == ["REFUTED", "CONDITIONAL", "REPRODUCED", "NOT-TESTABLE-HERE"]


def measured(arm: str, allocator: str, value: float, **comparisons: Any) -> dict[str, Any]:
    return {
        "experiment": "made/up", "arm": arm, "cell": cell_of("host", 16, allocator), "status": "ok", "reason": None,
        "samples": 2, "values": {"reserved_bytes.overall_peak": value}, "intervals": {}, "baseline_arm": "base",
        "comparisons": comparisons,
    }  # fmt: skip


def test_without_claims_the_comparisons_of_the_run_are_told_the_largest_first() -> None:
    peak = "reserved_bytes.overall_peak"
    found = findings(
        matrix=[
            measured("base", "malloc", 4 * GIB),
            measured("same", "bfc", 4 * GIB, **{peak: comparison_of(0, 0)}),
            measured("more", "caching", 5 * GIB, **{peak: comparison_of(math.log(1.25), 0)}),
            measured("twice", "planned", 8 * GIB, **{peak: comparison_of(math.log(2), 0)}),
        ]
    )
    sentences = [finding.sentence.replace("\u202f", " ") for finding in found]
    assert [finding.word.word for finding in found] == ["WORSE", "WORSE", "SAME"]
    assert sentences[1] == "With caching, reserved memory at its peak was 25.0 % higher than with malloc (5 GiB against 4 GiB)."
    assert "100 % higher" in sentences[0] and "the same as with malloc" in sentences[2]


def test_a_comparison_that_is_not_exact_has_its_interval() -> None:
    peak = "reserved_bytes.overall_peak"
    (found,) = findings(matrix=[measured("base", "malloc", 1), measured("more", "bfc", 2, **{peak: comparison_of(0.1, 0.01)})])
    assert "95 % interval" in found.sentence.replace("\u202f", " ")
