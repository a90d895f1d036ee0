"""Names and explanations, from glossary.toml."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Word:
    """A verdict as the page shows it. `word` is as the file has it, known or not."""

    word: str
    tone: str = "none"
    icon: str = "question"
    meaning: str = ""
    detail: str = ""  # the text in parentheses


@functools.cache
def _content() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))


def verdict(text: str) -> Word:
    """Looks up "NOT-TESTABLE-HERE(a CUDA GPU)" by the word before the parenthesis."""
    word, _, detail = text.partition("(")
    word, detail = word.strip(), detail.rstrip(") ").strip()
    for entry in _content()["verdict"]:
        if entry["word"] == word:
            return Word(word, entry["tone"], entry["icon"], entry["meaning"], detail)
    return Word(word, detail=detail)


def verdicts() -> list[Word]:
    return [verdict(entry["word"]) for entry in _content()["verdict"]]


def consequence() -> list[str]:
    """The words of verdicts; those that matter most to a reader come first."""
    return list(_content()["first_screen"]["consequence"])


def holds(word: str) -> str:
    """A verdict as an answer to "does it hold?": "Does not hold"."""
    for answer, words in _content()["first_screen"]["holds"].items():
        if word in words:
            return answer
    return "Not decided"


def quantity(name: str) -> str:
    """ "reserved_bytes.initial" → "reserved memory before step 1": as a sentence has it."""
    base, _, moment = name.partition(".")
    words = _content()["quantity"].get(base)
    if words is None:
        return metric(name)
    return f"{words} {_content()['quantity_moment'].get(moment, '')}".strip()


def terms() -> list[tuple[str, str]]:
    return [(entry["word"], entry["meaning"]) for entry in _content()["term"]]


def metric(name: str) -> str:
    """ "reserved_bytes.overall_peak" → "reserved, peak"."""
    base, _, moment = name.partition(".")
    words = _content()["metric"].get(base, base.replace("_", " "))
    if moment and moment != base:
        words += ", " + _content()["moment"].get(moment, moment.replace("_", " ").replace(".", " "))
    return words


def metrics() -> list[str]:
    return list(_content()["metric"])


def in_words(sentence: str) -> str:
    """The sentence with the names of metrics replaced by words."""
    known = _content()["metric"]
    return re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+(?:\.[a-z0-9_]+)*\b", lambda m: _named(m[0], known), sentence)


def as_sentence(text: str) -> str:
    """`in_words` with a capital letter and a full stop. A name at the beginning keeps its case."""
    words = in_words(text)
    first = words.partition(" ")[0].rstrip(":,;")
    if first.isalpha() and first.islower():
        words = words[0].upper() + words[1:]
    return words if not words or words[-1] in ".!?:" else words + "."


def _named(name: str, known: dict[str, str]) -> str:
    # Without its comma, because sentences list such names.
    return metric(name).replace(", ", " ") if name.partition(".")[0] in known else name


def matrix_metrics() -> list[str]:
    return list(_content()["matrix"]["metrics"])


def framework_defaults() -> dict[str, str]:
    """Allocator → whose default it is, in the order of preference."""
    return dict(_content()["matrix"]["defaults"])


def more_is_better(name: str) -> bool:
    return name.partition(".")[0] in _content()["better"]["more"]
