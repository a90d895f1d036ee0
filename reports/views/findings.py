"""The first screen of a judged run: of each claim, in one sentence, what was found. The words and
numbers come from the evidence and the verdicts of the result file; nothing is judged here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from markupsafe import Markup

from reports.charts.evidence import Series, claimed_of, series_of
from reports.charts.evidence_text import effect_text, interval_text
from reports.charts.palette import readable, split_spec
from reports.charts.strip import strip
from reports.data import glossary, units
from reports.data.axes import differing, strategy_label
from reports.data.devices import NEARNESS, basis
from reports.data.glossary import Word
from reports.data.slug import slug
from reports.views.claims import claimed_text, deciding_part
from reports.views.page import Page

MAXIMUM_COMPARISONS = 8  # of a run without claims; Compare has all
_COMPARED = ("reserved_bytes.overall_peak", "steady_step_time_ns")
_DECIDED = ("WORSE", "BETTER")
_FOUND = "REPRODUCED"  # the word of evidence that is as claimed
_BESIDE = ("control", "interface")  # kinds of parts that are not what the claim says of memory


@dataclass(frozen=True)
class Finding:
    id: str  # of the claim; empty where no claim was asked about
    anchor: str
    link: str  # to the claim, or to the configuration
    title: str
    word: Word
    sentence: str
    parts: Sequence[tuple[str, Sequence[str]]]  # "Holds" …, its parts; empty where all have the same answer
    elsewhere: str  # what another engine or device shows, where that is something else
    instead: str  # the first sentence of what to do; empty without a claim
    basis: str  # measured, simulated or virtual
    picture: Markup | None


def build_findings(page: Page) -> list[Finding]:
    """In order of consequence: what does not hold comes first. Without claims, the comparisons of the
    run, the largest difference first."""
    if not page.claims:
        return _comparisons(page)
    order = glossary.consequence()
    findings = [_finding(claim, page) for claim in page.claims]
    return sorted(findings, key=lambda item: order.index(item.word.word) if item.word.word in order else len(order))


def _comparisons(page: Page) -> list[Finding]:
    entries = {(entry["experiment"], entry["arm"]): entry for entry in page.entries}
    found = []
    for entry in page.entries:
        baseline = entries.get((entry["experiment"], entry["baseline_arm"] or ""))
        if baseline is None or baseline is entry:
            continue
        for metric in _COMPARED:
            comparison = entry["comparisons"].get(metric)
            if comparison and comparison["scale"] == "log_ratio" and comparison.get("effect") is not None:
                found.append((comparison, _comparison(entry, baseline, metric, comparison)))
    found.sort(key=lambda item: (item[0]["verdict"] not in _DECIDED, -abs(item[0]["theta"])))
    return [finding for _, finding in found[:MAXIMUM_COMPARISONS]]


def _comparison(
    entry: dict[str, Any], baseline: dict[str, Any], metric: str, comparison: dict[str, Any]
) -> Finding:
    cell, unit = entry["cell"], units.unit_of(metric)
    varied = differing([cell, baseline["cell"]])
    what = glossary.quantity(metric)
    effect = comparison["effect"]
    change = _than(_relative(effect)) if effect else "the same as with"
    sentence = f"With {strategy_label(cell, varied)}, {what} was {change} {strategy_label(baseline['cell'], varied)}"
    values = [units.value_in(each["values"].get(metric), unit) for each in (entry, baseline)]
    sentence += f" ({values[0]} against {values[1]})"
    bounds = comparison["ci95"]
    if not comparison["exact"] and bounds and None not in bounds:
        sentence += f"; 95 % interval {' … '.join(units.effect(math.expm1(bound)) for bound in bounds)}"
    return Finding(
        id="",
        anchor="finding-" + slug("|".join((entry["experiment"], entry["arm"], metric))),
        link="cell-" + slug(cell["cell_id"]),
        title=f"{readable(cell['workload'])} on {readable(cell['device'])}",
        word=glossary.verdict(comparison["verdict"]),
        sentence=sentence + ".",
        parts=[],
        elsewhere="",
        instead="",
        basis=basis(cell),
        picture=None,
    )


def _finding(claim: dict[str, Any], page: Page) -> Finding:
    part = deciding_part(claim)
    own = _own(part) if part else []
    others = [verdict for verdict in part["verdicts"] if verdict["relation"] == "analogue"] if part else []
    # Of several devices the one that the claim's word is of, where it has figures: one that was there,
    # then a framework's own code on a virtual card, then Headroom's engine.
    own.sort(key=lambda verdict: (verdict["verdict"] != claim["verdict"], NEARNESS.index(basis(verdict))))
    told = next((verdict for verdict in own if _known(verdict)), None)
    sentence = _sentence(part, told, page) if part and told else glossary.as_sentence(claim["why"])
    if told and basis(told) == "virtual":
        sentence = f"{told['subject']}: {sentence}"
    also = [_of_subject(part, other, page) for other in own if other is not told and _known(other)]
    verdict = glossary.verdict(claim["verdict"])
    unlike = [other for other in others if _known(other) and glossary.verdict(other["verdict"]).word != verdict.word]
    anchor = slug(claim["id"])
    return Finding(
        id=claim["id"],
        anchor=f"finding-{anchor}",
        link=f"claim-{anchor}",
        title=claim["title"],
        word=verdict,
        sentence=sentence,
        parts=_parts(claim),
        elsewhere=" ".join([*also, *(_elsewhere(part, other, bool(told), page) for other in unlike)]),
        instead=_first_sentence(claim["instead"]),
        basis=basis(told) if told else "measured",
        picture=_picture(part, told, page) if told else None,
    )


def _elsewhere(part: dict[str, Any], verdict: dict[str, Any], differs: bool, page: Page) -> str:
    known = _known(verdict)
    names = _listed(split_spec(page.arms.allocator(item["experiment"], item["treatment_arm"])).name for item in known)
    where = f"{names} on {verdict['device_class']}" if names else verdict["device_class"]
    return f"{'It is different' if differs else 'Measured elsewhere,'} with {where}: {_sentence(part, verdict, page)}"


def _of_subject(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    return f"{verdict['subject']} ({basis(verdict)}): {_sentence(part, verdict, page)}"


def _own(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [verdict for verdict in part["verdicts"] if verdict["relation"] != "analogue"]


def _known(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    """Its evidence that has a figure."""
    return [item for item in verdict["evidence"] if item["comparison"]["theta"] is not None]


def _sentence(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    known = _known(verdict)
    found = sum(1 for item in known if item["comparison"]["verdict"] == _FOUND)
    if part["judge"] == "predicate":
        if len(known) == 1:
            return glossary.as_sentence(verdict["why"])
        return f"True at {found} of {len(known)} points tried: {part['text']}"
    series = series_of(known, page.arms, page.looks)
    if len({(one.relative, one.unit) for one in series}) > 1:
        return glossary.as_sentence(verdict["why"])
    text = _measured(series)
    if claimed := _claimed(part, series):
        text += f"; claimed: {claimed}"
    if len(known) > 1:
        text += f" (as claimed at {found} of {len(known)} points)"
    if missing := len(verdict["evidence"]) - len(known):
        text += f"; {missing} more gave no figure"
    return text + "."


def _claimed(part: dict[str, Any], series: Sequence[Series]) -> str:
    claimed = part["claimed"]
    if claimed and series[0].baseline_arm:
        if claimed["value"] is not None:
            return _size_and_word(claimed["value"], series[0])
        if claimed["low"] is None and claimed["high"] is None:
            return {-1: "lower", 1: "higher"}.get(claimed["direction"], "")
    return claimed_text(part, series)


def _measured(series: Sequence[Series]) -> str:
    """ "With growth, reserved memory was 46.0 % to 99.8 % lower than with prealloc"."""
    first = series[0]
    effects = [point.effect for one in series for point in one.points if point.effect is not None]
    what = _quantity([one.metric for one in series])
    text = f"With {_listed(one.treatment_arm for one in series)}, {what} {'were' if ' and ' in what else 'was'} "
    if not first.baseline_arm:
        ends = dict.fromkeys(units.value_in(value, first.unit) for value in (min(effects), max(effects)))
        return text + " to ".join(ends)
    text += f"{_change(effects, first)} {_listed(one.baseline_arm for one in series)}"
    point = first.points[0]
    if len(effects) == 1 and not point.exact and point.ci95:
        text += f" (95 % interval {interval_text(point.ci95, first)})"
    return text


def _change(effects: Sequence[float], series: Series) -> str:
    low, high = min(effects), max(effects)
    if low == high == 0:
        return "the same as with"
    if low < 0 < high:
        return _than(f"from {_size_and_word(low, series)} to {_size_and_word(high, series)}")
    near, far = (low, high) if low >= 0 else (high, low)
    if near == 0:
        return _than(f"up to {_size_and_word(far, series)}")
    ends = dict.fromkeys((_size(near, series), _size_and_word(far, series)))
    return _than(" to ".join(ends) if low != high else _size_and_word(far, series))


def _than(words: str) -> str:
    """ "4× as high" → "4× as high as with"; "5 % lower" → "5 % lower than with"."""
    return words + (" as with" if words.endswith("as high") else " than with")


def _size(effect: float, series: Series) -> str:
    return effect_text(abs(effect), series).lstrip("+")


def _size_and_word(effect: float, series: Series) -> str:
    """−0.62 → "62.0 % lower"; from four times as much on, "16× as high"."""
    if series.relative:
        return _relative(effect)
    return f"{_size(effect, series)} {'higher' if effect > 0 else 'lower'}"


def _relative(effect: float) -> str:
    size = units.effect(abs(effect)).lstrip("+")
    return f"{size} as high" if size.endswith("×") else f"{size} {'higher' if effect > 0 else 'lower'}"


def _quantity(metrics: Sequence[str]) -> str:
    names = dict.fromkeys(metrics)
    if len(names) == 1:
        return glossary.quantity(next(iter(names)))
    return _listed(glossary.quantity(name.partition(".")[0]) for name in names)


def _listed(names: Iterable[str]) -> str:
    every = list(dict.fromkeys(names))
    return " and ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else every[0]


def _parts(claim: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Which part holds and which does not: a word for the whole cannot say it."""
    judged = [
        (glossary.verdict(verdict["verdict"]).word, part["name"])
        for part in claim["parts"]
        if part.get("kind") not in _BESIDE
        for verdict in _own(part)[:1]
    ]
    groups: dict[str, list[str]] = {}
    for word, name in judged:
        groups.setdefault(glossary.holds(word), []).append(name)
    return list(groups.items()) if len(groups) > 1 else []


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?;:])\s+(?=[A-Z])", text.strip(), maxsplit=1)[0]


def _picture(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> Markup | None:
    series = series_of(_known(verdict), page.arms, page.looks)
    if part["judge"] == "predicate" or len({(one.relative, one.unit) for one in series}) > 1:
        return None
    return strip([point for one in series for point in one.points], claimed_of(part["claimed"]))
