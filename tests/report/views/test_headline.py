"""The sentence that a finding begins with: the words of the claim's file, the figures of the evidence."""

from __future__ import annotations

from typing import Any

import pytest
from fixture_verdicts import bound_of, claim_of, verdict_of
from test_findings import GIB, findings, held, ratio

from reports.views.first_screen.findings import Finding

SENTENCE = "Growth held {less|more} memory than before."


def told(part: dict[str, Any], word: str = "REFUTED", *others: dict[str, Any]) -> Finding:
    (finding,) = findings(claim_of("S1", "A claim", "It says so.", word, [part, *others]))
    return finding


def found(*values: tuple[float, float], words: str = "REFUTED", sentence: str = SENTENCE) -> dict[str, Any]:
    evidence = held(*values)
    for item, word in zip(evidence, words.split() * len(values)):
        item["comparison"]["verdict"] = word
    return {**ratio(evidence), "found": sentence}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([(4, 3)], "25.0 % less"),
        ([(4, 3), (4, 1)], "25.0 to 75.0 % less"),
        ([(4, 4), (4, 1)], "0 to 75.0 % less"),
        ([(4, 4)], "no less"),
        ([(4, 5)], "25.0 % more"),
        ([(4, 4), (4, 5)], "0 to 25.0 % more"),
        ([(4, 3), (4, 5)], "25.0 % less to 25.0 % more"),
        ([(1, 16)], "1500 % more"),
    ],
)
def test_the_figures_say_how_much_and_in_which_direction(values: list[tuple[float, float]], words: str) -> None:
    headline = told(found(*((low * GIB, high * GIB) for low, high in values))).headline
    assert headline.replace("\u202f", " ") == f"Growth held {words} memory than before."


def test_any_pair_of_words_stands_for_less_and_more() -> None:
    part = found((4, 3), (4, 5), sentence="Batches were {smaller|larger}.")
    assert told(part).headline.replace("\u202f", " ") == "Batches were 25.0 % smaller to 25.0 % larger."


def test_values_that_are_compared_with_nothing_are_told_with_one_unit() -> None:
    evidence = [{**bound_of(f"S1/batch={size}", "reserved_bytes.initial", size * GIB), "unit": "B"} for size in (3, 2)]
    part = {**ratio(evidence), "judge": "bound", "found": "It held {value}."}
    assert told(part).headline.replace("\u202f", " ") == "It held 2 to 3 GiB."


def test_of_yes_and_no_the_cases_are_counted_and_drawn() -> None:
    evidence = [bound_of(f"S1/batch={answer}", "interface.works", answer) for answer in (1, 0, 0)]
    evidence[0]["comparison"]["verdict"] = "REPRODUCED"
    finding = told({**ratio(evidence), "judge": "predicate", "found": "Both trained in {cases}."})
    assert finding.headline == "Both trained in 1 of 3 cases."
    assert finding.picture.count("<rect") == 3 and finding.picture.count("var(--surface)") == 2


def test_where_few_points_differ_they_are_named() -> None:
    part = found((4, 3), (4, 4), (4, 2), words="REPRODUCED REFUTED REPRODUCED")
    assert told(part, "CONDITIONAL").holds == "Holds at 2 of 3 points: all but batch 1."


def test_where_many_points_differ_the_range_that_holds_is_told_if_it_is_short() -> None:
    part = found((4, 3), (4, 4), (4, 4), (4, 4), words="REPRODUCED REFUTED REFUTED REFUTED")
    part["verdicts"][0]["holds_for"] = "batch 0"
    assert told(part, "CONDITIONAL").holds == "Holds at 1 of 4 points: batch 0."
    part["verdicts"][0]["holds_for"] = "batch 0, " * 20
    assert told(part, "CONDITIONAL").holds == "Holds at 1 of 4 points."


def test_a_point_that_is_undecided_is_not_one_that_fails() -> None:
    part = found((4, 3), (4, 4), (4, 2), words="REPRODUCED INCONCLUSIVE REPRODUCED")
    assert told(part, "CONDITIONAL").holds == "Holds at 2 of 3 points, 1 undecided."
    assert told(found((4, 3), words="INCONCLUSIVE"), "INCONCLUSIVE").holds == "Undecided."
    part = found((4, 3), (4, 5), words="INCONCLUSIVE REFUTED")
    assert told(part, "INCONCLUSIVE").holds == "Undecided at 1 of 2 points."


def test_the_parts_that_do_not_hold_are_named_beside_one_that_does() -> None:
    part = found((4, 3), words="REPRODUCED")
    part["verdicts"][0]["verdict"] = "REPRODUCED"
    other = {**ratio(held((4, 4))), "name": "much less"}
    assert told(part, "CONDITIONAL", other).holds == "Does not hold: much less."


def test_an_interface_that_is_not_there_is_named() -> None:
    part = found((4, 3))
    interface = {**ratio([], "ILL-POSED"), "kind": "interface", "name": "the call is there"}
    assert told(part, "ILL-POSED", interface).holds == "Not possible: the call is there."


def test_an_engine_that_differs_is_told_with_its_figures() -> None:
    part = found((4, 4))
    part["verdicts"].append(verdict_of("meta", "REPRODUCED", "why", held((4, 5)), relation="analogue"))
    assert told(part).holds.replace("\u202f", " ").endswith("meta: 25.0 % more.")


def test_without_a_sentence_of_its_own_a_claim_has_the_long_one() -> None:
    finding = told(ratio(held((4, 3))))
    assert finding.headline == finding.sentence and finding.holds == ""
