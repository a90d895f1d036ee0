"""The text on the terminal at the end of a run: what was found, how certain it is, what to do next. The
sentences are those of the report's first screen."""

from __future__ import annotations

import textwrap
from typing import Iterator

from reports.data import glossary
from reports.data.read import RunData
from reports.views.cost import build_cost
from reports.views.first_screen.findings import Finding
from reports.views.first_screen.summary import build_summary
from reports.views.page import page_of

WIDTH = 100
UNDECIDED, UNTESTABLE = "INCONCLUSIVE", "NOT-TESTABLE-HERE"


def closing(data: RunData) -> str:
    """Plain text of at most WIDTH columns, with a line break at the end. Empty for a run that was not
    judged."""
    if not data.verdicts:
        return ""
    page = page_of(data)
    summary = build_summary(page)
    instrument = page["instrument"]
    lines = ["What was found", *_found(summary.findings), "How sure is it"]
    lines += _wrapped(f"Can the times be trusted? {summary.trust}")
    for state, why in (
        (instrument.sensitivity, instrument.sensitivity_why),
        (instrument.calibration, instrument.calibration_why),
    ):
        if state.tone == "bad":
            lines += _wrapped(glossary.as_sentence(why))
    if cost := build_cost(data.run):
        lines += _wrapped(f"Cost of measuring: {cost.sentence}")
    lines += ["What to do next", *_next(data, summary.findings)]
    return "\n".join(lines) + "\n"


def _found(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        if _only_named(finding):
            continue
        yield from _wrapped(f"{finding.id} {finding.word.word}: {finding.title}".strip())
        untestable = finding.word.word == UNTESTABLE
        yield from _wrapped(glossary.in_words(finding.elsewhere if untestable else finding.told), "      ")
        if finding.instead:
            yield from _wrapped(f"Instead: {finding.instead}", "      ")
    for word, meaning in ((UNDECIDED, "Not decided"), (UNTESTABLE, "Not testable on this machine")):
        if names := [each.id for each in findings if each.word.word == word and each.id and _only_named(each)]:
            yield from _wrapped(f"{meaning}: {', '.join(names)}.")


def _only_named(finding: Finding) -> bool:
    """Whether nothing was found: the claim is undecided, or cannot be tested here and no analogue was."""
    return finding.word.word == UNDECIDED or (finding.word.word == UNTESTABLE and not finding.elsewhere)


def _next(data: RunData, findings: list[Finding]) -> Iterator[str]:
    yield "  Read the report: it shows every figure and the evidence for it."
    if len(data.samples) < data.run["planned_samples"]:
        yield f"  Complete the run: headroom run --resume {data.directory}"
    elif any(finding.word.word == UNDECIDED and finding.id for finding in findings):
        yield "  Measure more of what is not decided, when nothing else runs here:"
        yield f"    headroom run --resume {data.directory} --rerun inconclusive"


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
