"""The sentence that a finding begins with. The file of the claim has its words, and the evidence fills its
placeholder: `{less|more}` with a change, `{value}` with values, `{cases}` with how often a yes was found. What
follows, which part holds and what another engine shows, is from the evidence alone."""

from __future__ import annotations

import re
from typing import Any, Iterator, Sequence

from reports.charts.evidence import Series, series_of
from reports.data import glossary, units
from reports.views.first_screen.finding_text import FOUND, UNDECIDED, place, with_figures
from reports.views.page import Page

_PLACEHOLDER = re.compile(r"\{([^{}|]+)(?:\|([^{}|]+))?\}")
_FEW = 2  # exceptions that are named
_SHORT = 75  # characters of a list of conditions that fits behind a sentence


def headline(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    """Empty where the part has no sentence, or where its figures are of several kinds."""
    placeholder = _PLACEHOLDER.search(part.get("found") or "")
    text = figures(part, verdict, page)
    return part["found"].replace(placeholder[0], text) if placeholder and text else ""


def answers(verdict: dict[str, Any]) -> list[bool]:
    """The answer in each case, for a part that is true or false."""
    return [item["comparison"]["theta"] == 1 for item in with_figures(verdict)]


def holding(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    """Names the points at which a part holds, if it holds at some only."""
    known = with_figures(verdict)
    words = [item["comparison"]["verdict"] for item in known]
    found, undecided = words.count(FOUND), words.count(UNDECIDED)
    if found == 0 and undecided:
        return "Undecided." if undecided == len(words) else f"Undecided at {undecided} of {len(words)} points."
    if found in (0, len(words)):
        return ""
    text = "Holds" if part["judge"] == "predicate" else f"Holds at {found} of {len(words)} points"  # the sentence has it
    if undecided:
        text += f", {undecided} undecided"
    elif len(words) - found <= min(_FEW, found - 1):
        text += f": all but {units.listed(_exceptions(series_of(known, page.arms, page.looks)))}"
    elif len(where := glossary.in_words(verdict["holds_for"] or "")) in range(1, _SHORT):
        text += f": {where}"
    return f"{text}." if text != "Holds" else ""


def _exceptions(series: Sequence[Series]) -> Iterator[str]:
    several = len({one.metric for one in series}) > 1
    for one in series:
        for point in one.points:
            if point.verdict != FOUND:
                metric = f", {glossary.quantity(one.metric.partition('.')[0])}" if several else ""
                yield place(point, one, series) + metric


def figures(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    """Fills the placeholder. For another engine these words follow the sentence by themselves."""
    known = with_figures(verdict)
    series = series_of(known, page.arms, page.looks)
    placeholder = _PLACEHOLDER.search(part.get("found") or "")
    if not placeholder or len({(one.relative, one.unit) for one in series}) != 1:
        return ""
    if part["judge"] == "predicate":
        return f"{sum(answers(verdict))} of {len(known)} case{'s' if len(known) > 1 else ''}"
    effects = [point.effect for one in series for point in one.points if point.effect is not None]
    low, high = min(effects), max(effects)
    if part["judge"] == "bound":
        return _range(units.value_in(low, series[0].unit), units.value_in(high, series[0].unit))
    return _change(low, high, placeholder[1], placeholder[2], part["claimed"]["direction"], series[0])


def _change(low: float, high: float, less: str, more: str, direction: int, series: Series) -> str:
    """ "0 to 99.8 % less", "2.2 % less to 16 % more", "no less"."""

    def size(effect: float) -> str:
        return units.percent(abs(effect)) if series.relative else units.value_in(abs(effect), series.unit)

    if low == high == 0:
        return f"no {less if direction < 0 else more}"
    if low < 0 < high:
        return f"{size(low)} {less} to {size(high)} {more}"
    return f"{_range(size(high), size(low))} {less}" if low < 0 else f"{_range(size(low), size(high))} {more}"


def _range(first: str, last: str) -> str:
    """ "2.73 GiB" and "21.5 GiB" → "2.73 to 21.5 GiB"."""
    if first == last:
        return first
    number, _, unit = first.rpartition(units.NARROW)
    same = unit and last.endswith(units.NARROW + unit)
    return f"{number if same or number == '0' else first} to {last}"
