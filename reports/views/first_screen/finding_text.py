"""What the evidence of a part says, in one sentence of numbers: the answer, the range that was measured
and where its ends are, and what was claimed."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from reports.charts.evidence import Point, Series, series_of
from reports.charts.evidence_text import effect_text, interval_text
from reports.data import glossary, units
from reports.views.claims import claimed_text, has_figure
from reports.views.page import Page

FOUND, UNDECIDED = "REPRODUCED", "INCONCLUSIVE"  # words of evidence: as claimed, or not known whether


def with_figures(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """Its evidence that has a figure."""
    return [item for item in verdict["evidence"] if has_figure(item)]


def finding_sentence(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    known = with_figures(verdict)
    words = [item["comparison"]["verdict"] for item in known]
    if part["judge"] == "predicate":
        if len(known) == 1:
            return glossary.as_sentence(verdict["why"])
        return f"True at {words.count(FOUND)} of {len(known)} points tried: {part['text']}"
    series = series_of(known, page.arms, page.looks)
    if len({(one.relative, one.unit) for one in series}) > 1:
        return glossary.as_sentence(verdict["why"])
    text = _measured(series)
    if claimed := _claimed(part, series):
        text = f"{_answer(claimed, words)}: {text[0].lower()}{text[1:]}"
    if missing := len(verdict["evidence"]) - len(known):
        text += f"; {missing} more gave no figure"
    return text + "."


def _answer(claimed: str, words: Sequence[str]) -> str:
    """Says how often it was as claimed. Undecided points are only counted."""
    of, found, undecided = len(words), words.count(FOUND), words.count(UNDECIDED)
    if undecided == of:
        return f"Undecided whether as claimed ({claimed})"
    if of == 1:
        return f"{'As' if found else 'Not as'} claimed ({claimed})"
    rest = f", {undecided} undecided" if undecided else ""
    if found == 0:
        return f"Not as claimed ({claimed}), at none of {of} points{rest}"
    return f"As claimed ({claimed}) at {_share(found, of)} points{rest}"


def _share(found: int, of: int) -> str:
    if found < of:
        return f"{found} of {of}"
    return "both" if of == 2 else f"all {of}"


def _claimed(part: dict[str, Any], series: Sequence[Series]) -> str:
    claimed = part["claimed"]
    if claimed and series[0].baseline_arm:
        if claimed["value"] is not None:
            return _size_and_word(claimed["value"], series[0])
        if claimed["low"] is None and claimed["high"] is None:
            return {-1: "lower", 1: "higher"}.get(claimed["direction"], "")
    return claimed_text(part, series)


def _measured(series: Sequence[Series]) -> str:
    """ "With growth, reserved memory was 46.0 % (v100, batch 46) to 99.8 % (h200, batch 1) lower than
    with prealloc"."""
    first = series[0]
    points = sorted(
        ((point.effect, point, one) for one in series for point in one.points if point.effect is not None),
        key=lambda entry: entry[0],
    )
    what = _quantity([one.metric for one in series])
    text = f"With {_arms(one.treatment_arm for one in series)}, {what} {'were' if ' and ' in what else 'was'} "
    ends = [(effect, _behind(place(point, one, series))) for effect, point, one in (points[0], points[-1])]
    if not first.baseline_arm:
        (low, where), (high, there) = ((units.value_in(effect, first.unit), words) for effect, words in ends)
        return text + (low if low == high else f"{low}{where} to {high}{there}")
    text += f"{_change(ends, first)} {_arms(one.baseline_arm for one in series)}"
    point = first.points[0]
    if len(points) == 1 and not point.exact and point.ci95:
        text += f" (95 % interval {interval_text(point.ci95, first)})"
    return text


def place(point: Point, of: Series, series: Sequence[Series]) -> str:
    """ "v100-16gb, batch 32": only what tells it apart from the other points."""
    several = len({one.name for one in series}) > 1
    names = [of.name] if several else []
    if len({one.label for every in series for one in every.points}) > 1 and point.label:
        names.append(f"{of.parameter.replace('_', ' ')} {point.label}".strip())
    return ", ".join(names)


def _behind(words: str) -> str:
    return f" ({words})" if words else ""


def _change(ends: Sequence[tuple[float, str]], series: Series) -> str:
    (low, where), (high, there) = ends
    if low == high == 0:
        return "the same as with"
    if low < 0 < high:
        return than(f"from {_size_and_word(low, series)}{where} to {_size_and_word(high, series)}{there}")
    near, far = ends if low >= 0 else (ends[1], ends[0])
    if near[0] == 0:
        return than(f"from the same{near[1]} to {_size_and_word(far[0], series)}{far[1]}")
    if (size := _size(near[0], series)) == _size(far[0], series):
        return than(_size_and_word(far[0], series))
    word = "" if size.endswith("×") or not series.relative else f" {_word(near[0])}"
    return than(f"{size}{word}{near[1]} to {_size_and_word(far[0], series)}{far[1]}")


def than(words: str) -> str:
    """ "4× as high" → "4× as high as with"; "5 % lower" → "5 % lower than with"."""
    return words + (" as with" if "as high" in words.rpartition(" to ")[2] else " than with")


def _size(effect: float, series: Series) -> str:
    return effect_text(abs(effect), series).lstrip("+")


def _word(effect: float) -> str:
    return "higher" if effect > 0 else "lower"


def _size_and_word(effect: float, series: Series) -> str:
    """−0.62 → "62.0 % lower"; from four times as much on, "16× as high"."""
    return relative(effect) if series.relative else f"{_size(effect, series)} {_word(effect)}"


def relative(effect: float) -> str:
    size = units.effect(abs(effect)).lstrip("+")
    return f"{size} as high" if size.endswith("×") else f"{size} {_word(effect)}"


def _quantity(metrics: Sequence[str]) -> str:
    names = dict.fromkeys(metrics)
    if len(names) == 1:
        return glossary.quantity(next(iter(names)))
    return units.listed(glossary.quantity(name.partition(".")[0]) for name in names)


def _arms(names: Iterable[str]) -> str:
    return units.listed(name.replace("_", " ") for name in names)
