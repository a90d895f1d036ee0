"""The first screen of a judged run: what was found about each claim, in one sentence. The words and
numbers come from the evidence and the verdicts of the result file; nothing is judged here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Sequence

from markupsafe import Markup

from reports.charts.evidence import Claimed, Point, claimed_of, series_of
from reports.charts.palette import plain_name, readable
from reports.charts.strip import strip, tally
from reports.data import glossary, units
from reports.data.axes import differing, strategy_label
from reports.data.devices import NEARNESS, basis
from reports.data.glossary import Word
from reports.data.slug import slug
from reports.views.claims import deciding_part
from reports.views.first_screen.finding_text import FOUND, finding_sentence, relative, than, with_figures
from reports.views.first_screen.headline import answers, figures, headline, holding
from reports.views.page import Page

MAXIMUM_COMPARISONS = 8  # of a run without claims; Compare has all
_COMPARED = ("reserved_bytes.overall_peak", "steady_step_time_ns")
_DECIDED = ("WORSE", "BETTER")
_BESIDE = ("control", "interface")  # kinds of parts that are not what the claim says of memory


@dataclass(frozen=True)
class Finding:
    id: str  # of the claim; empty where no claim was asked about
    anchor: str
    link: str  # to the claim, or to the configuration
    title: str
    word: Word
    headline: str  # what was found, in a line or two
    holds: str  # which of its points or parts differ, and the figures of another engine that does
    sentence: str  # the same with every range and its places; the headline, where there is no more to say
    parts: Sequence[tuple[str, Sequence[str]]]  # "Holds" …, its parts; empty where all have the same answer
    elsewhere: str  # what another engine or device shows, where that is something else
    instead: str  # the first sentence of what to do; empty without a claim
    basis: str  # measured, simulated or virtual
    points: Sequence[Point]  # what its picture shows; empty where no picture can
    answers: Sequence[bool]  # what its picture shows if the claim is true or false in each case
    claimed: Claimed | None

    @property
    def picture(self) -> Markup | None:
        if self.answers:
            return tally(self.answers)
        return strip(self.points, self.claimed) if self.points else None

    @property
    def told(self) -> str:
        return f"{self.headline} {self.holds}".strip()

    @property
    def quote(self) -> str:
        """A text that can be quoted without the page."""
        name = ", ".join(part for part in (self.id, self.title) if part)
        return f"{name}: {self.word.word}. {self.told}" + (f" ({self.basis})" if self.basis != "measured" else "")


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
    change = than(relative(effect)) if effect else "the same as with"
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
        headline=sentence + ".",
        holds="",
        sentence=sentence + ".",
        parts=[],
        elsewhere="",
        instead="",
        basis=basis(cell),
        points=[],
        answers=[],
        claimed=None,
    )


def _finding(claim: dict[str, Any], page: Page) -> Finding:
    part = deciding_part(claim)
    own = _own(part) if part else []
    others = [verdict for verdict in part["verdicts"] if verdict["relation"] == "analogue"] if part else []
    # The first with figures is shown. Devices that have the claim's own verdict come first and, among equals, a
    # real device, then a framework's own code on a virtual card, then Headroom's engine.
    own.sort(key=lambda verdict: (verdict["verdict"] != claim["verdict"], NEARNESS.index(basis(verdict))))
    told = next((verdict for verdict in own if with_figures(verdict)), None)
    sentence = finding_sentence(part, told, page) if part and told else glossary.as_sentence(claim["why"])
    if told and basis(told) == "virtual":
        sentence = f"{told['subject']}: {sentence}"
    also = [_of_subject(part, other, page) for other in own if other is not told and with_figures(other)]
    verdict = glossary.verdict(claim["verdict"])
    unlike = [other for other in others if with_figures(other) and glossary.verdict(other["verdict"]).word != verdict.word]
    anchor = slug(claim["id"])
    return Finding(
        id=claim["id"],
        anchor=f"finding-{anchor}",
        link=f"claim-{anchor}",
        title=claim["title"],
        word=verdict,
        headline=(headline(part, told, page) if part and told else "") or sentence,
        holds=_holds(claim, part, told, unlike, page) if part else "",
        sentence=sentence,
        parts=_parts(claim),
        elsewhere=" ".join([*also, *(_elsewhere(part, other, bool(told), page) for other in unlike)]),
        instead=_first_sentence(claim["instead"]),
        basis=basis(told) if told else "measured",
        points=_points(part, told, page) if told else [],
        answers=answers(told) if part and told and part["judge"] == "predicate" else [],
        claimed=claimed_of(part["claimed"]) if part else None,
    )


def _holds(
    claim: dict[str, Any],
    part: dict[str, Any],
    told: dict[str, Any] | None,
    unlike: Sequence[dict[str, Any]],
    page: Page,
) -> str:
    if not part.get("found"):
        return ""  # the sentence has it
    words = [_differing(claim, part, told, page)] if told else []
    others = [(_whose(other, page), figures(part, other, page)) for other in unlike]
    return " ".join([*words, *(f"With {whose}: {text}." for whose, text in others if text)]).strip()


def _differing(claim: dict[str, Any], part: dict[str, Any], told: dict[str, Any], page: Page) -> str:
    """Says what differs from the answer: an interface, points of the sweep, or parts."""
    missing = [part["name"] for part in claim["parts"] if part.get("kind") == "interface" and _is(part, "ILL-POSED")]
    if missing:
        return f"Not possible: {'; '.join(missing)}."
    if where := holding(part, told, page):
        return where
    answer = "Does not hold" if told["verdict"] == FOUND else "Holds"
    names = dict(_parts(claim)).get(answer)
    return f"{answer}: {'; '.join(names)}." if names else ""


def _is(part: dict[str, Any], word: str) -> bool:
    return any(glossary.verdict(verdict["verdict"]).word == word for verdict in _own(part))


def _elsewhere(part: dict[str, Any], verdict: dict[str, Any], differs: bool, page: Page) -> str:
    start = "Different" if differs else "Measured elsewhere,"
    return f"{start} with {_whose(verdict, page)}: {finding_sentence(part, verdict, page)}"


def _whose(verdict: dict[str, Any], page: Page) -> str:
    """ "caching (PyTorch's default) on meta", "bfc(growth=on) in PyTorch 2.15.0 on host"."""
    defaults = glossary.framework_defaults()
    names = dict.fromkeys(
        plain_name(page.arms.allocator(item["experiment"], item["treatment_arm"])) for item in with_figures(verdict)
    )
    whose = [f"{name} ({defaults[name]})" if name in defaults else name for name in names if name]
    is_headroom = verdict["subject"].startswith("Headroom ")
    place = f"on {verdict['device_class']}" if is_headroom else f"in {verdict['subject']}"
    return f"{units.listed(whose)} {place}" if whose else verdict["device_class"]


def _of_subject(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> str:
    return f"{verdict['subject']} ({basis(verdict)}): {finding_sentence(part, verdict, page)}"


def _own(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [verdict for verdict in part["verdicts"] if verdict["relation"] != "analogue"]


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


def _points(part: dict[str, Any], verdict: dict[str, Any], page: Page) -> list[Point]:
    series = series_of(with_figures(verdict), page.arms, page.looks)
    if part["judge"] == "predicate" or len({(one.relative, one.unit) for one in series}) > 1:
        return []
    return [point for one in series for point in one.points]
