"""Looks of allocators, words of verdicts, names of metrics."""

from __future__ import annotations

from reports.charts.palette import AllocatorLooks, split_spec
from reports.data import glossary


def test_a_known_strategy_looks_the_same_in_every_run() -> None:
    alone = AllocatorLooks({"bfc(growth=on)"})
    among_others = AllocatorLooks({"aaa", "bfc(growth=on)", "malloc", "zzz"})
    assert alone["bfc(growth=on)"] == among_others["bfc(growth=on)"]


def test_a_reserve_that_mirrors_the_card_does_not_change_the_look() -> None:
    looks = AllocatorLooks({"bfc(growth=on)", "bfc(growth=on,reserve=1050MiB)", "bfc(growth=off,reserve=1050MiB)"})
    assert looks["bfc(growth=on,reserve=1050MiB)"] == looks["bfc(growth=on)"]
    assert looks["bfc(growth=off,reserve=1050MiB)"] != looks["bfc(growth=on)"]


def test_many_strategies_all_look_different() -> None:
    specs = {f"strategy{number}" for number in range(20)}
    looks = AllocatorLooks(specs)
    assert len({(looks[spec].token, looks[spec].marker) for spec in specs}) == len(specs)


def test_a_spec_is_split_into_name_and_parameters() -> None:
    parts = split_spec("resnet(batch=8,depth=50)")
    assert (parts.name, parts.parameters) == ("resnet", "batch=8, depth=50")
    assert split_spec("malloc").parameters == ""


def test_of_a_chain_of_adaptors_the_allocator_stands_out() -> None:
    parts = split_spec("limit(4GiB)|guard(backward=3GiB)|caching(split=off,small=1MiB)")
    assert (parts.name, parts.parameters) == ("caching", "split=off, small=1MiB, behind limit(4GiB) | guard(backward=3GiB)")
    assert (split_spec("poison|bfc").name, split_spec("poison|bfc").parameters) == ("bfc", "behind poison")


def test_two_specs_beside_each_other_are_not_taken_for_one() -> None:
    text = "bfc(growth=on) · checkpointing every(k=2)"
    assert (split_spec(text).name, split_spec(text).parameters) == (text, "")
    assert split_spec("sequential(a|b(c=1))").parameters == "a|b(c=1)"


def test_a_verdict_with_an_explanation_is_known_by_its_word() -> None:
    word = glossary.verdict("NOT-TESTABLE-HERE(a CUDA GPU)")
    assert (word.word, word.detail) == ("NOT-TESTABLE-HERE", "a CUDA GPU")
    assert word.meaning


def test_an_unknown_verdict_is_shown_as_it_is() -> None:
    assert glossary.verdict("UNHEARD-OF").word == "UNHEARD-OF"


def test_metrics_have_names_in_words_known_or_not() -> None:
    assert glossary.metric("reserved_bytes.overall_peak") == "reserved, peak"
    assert glossary.metric("some_new_figure.some_moment") == "some new figure, some moment"


def test_names_of_metrics_in_a_sentence_become_words_and_other_names_stay() -> None:
    said = glossary.in_words("It holds for reserved_bytes.after_step_1, reserved_bytes.steady_peak: my_own_thing and a100-80gb.")
    assert said == "It holds for reserved after step 1, reserved peak after warm-up: my_own_thing and a100-80gb."


def test_a_reason_reads_as_a_sentence_whatever_begins_it() -> None:
    assert glossary.as_sentence("bytes of variables: 2 against 1") == "Bytes of variables: 2 against 1."
    assert glossary.as_sentence("v100-16gb batch=192 ran out of memory.") == "v100-16gb batch=192 ran out of memory."
    assert glossary.as_sentence("Holds at 2 of 3 (simulated)") == "Holds at 2 of 3 (simulated)."
    assert glossary.as_sentence("") == ""
