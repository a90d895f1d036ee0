"""JUnit XML. A test case fails when a verdict changed or a configuration got worse since the run it is
compared with, or when the instrument is not to be trusted; a crash is an error; what is
inconclusive, or cannot be tested here, is skipped. A refuted claim passes: it is a result.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any, Sequence

from reports.data import glossary
from reports.data.read import Changes, RunData

_SKIPPED_VERDICTS = ("INCONCLUSIVE", "NOT-TESTABLE-HERE")
_ERRORS = ("crash", "timeout", "invalid")
_FAILING_STATES = ("insensitive", "out of calibration")
_UNTESTED_STATES = ("not tested", "not yet calibrated")


@dataclass(frozen=True)
class Case:
    name: str
    outcome: str  # passed, failure, error, skipped
    message: str
    seconds: float = 0


def write(data: RunData, changes: Changes | None = None) -> str:
    root = ElementTree.Element("testsuites", {"name": f"headroom {_clean(data.run['run_id'])}"})
    suites = {"claims": _claims(data, changes), "cells": _cells(data, changes), "instrument": _instrument(data)}
    for name, cases in suites.items():
        if cases:
            _add_suite(root, name, cases, data.run["started"])
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _claims(data: RunData, changes: Changes | None) -> list[Case]:
    before = changes.verdicts_before() if changes else {}
    cases = []
    for claim in data.verdicts["claims"] if data.verdicts else []:
        word = claim["verdict"]
        message = f"{word}: {claim['why']}"
        outcome = "skipped" if glossary.verdict(word).word in _SKIPPED_VERDICTS else "passed"
        if claim["id"] in before and before[claim["id"]] != word:
            outcome, message = "failure", f"was {before[claim['id']]}, is {message}"
        cases.append(Case(f"{claim['id']}: {claim['title']}", outcome, message))
    return cases


def _cells(data: RunData, changes: Changes | None) -> list[Case]:
    worse = {(cell["experiment"], cell["arm"]): cell["sentence"] for cell in changes.worse()} if changes else {}
    controls = data.controls
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for sample in data.samples:
        if sample["experiment"] not in controls:
            groups.setdefault((sample["experiment"], sample["arm"]), []).append(sample)
    return [_cell(key, samples, worse.get(key)) for key, samples in groups.items()]


def _cell(key: tuple[str, str], samples: Sequence[dict[str, Any]], worse: str | None) -> Case:
    name = f"{key[0]} [{key[1]}]"
    seconds = sum(sum(sample["step_time_ns"]) + sample["setup_ns"] for sample in samples) / 1e9
    broken = [sample for sample in samples if sample["status"] in _ERRORS]
    if broken:
        told = [f"block {sample['block']}: {sample['status']}: {sample['reason'] or ''}" for sample in broken]
        return Case(name, "error", "; ".join(told), seconds)
    if worse is not None:
        return Case(name, "failure", f"worse than before: {worse}", seconds)
    absent = next((sample for sample in samples if sample["status"] == "unsupported"), None)
    if absent is not None:
        return Case(name, "skipped", absent["reason"] or "cannot run here", seconds)
    full = next((sample for sample in samples if sample["status"] == "oom"), None)
    return Case(name, "passed", f"out of memory: {full['reason'] or ''}" if full else "", seconds)


def _instrument(data: RunData) -> list[Case]:
    if not data.verdicts:
        return []
    states = {"detects injected effects": data.verdicts.get("sensitivity"), "false alarms": data.verdicts["calibration"]}
    cases = []
    for name, state in states.items():
        if state is None:
            continue
        status = state["status"]
        outcome = "failure" if status in _FAILING_STATES else "skipped" if status in _UNTESTED_STATES else "passed"
        cases.append(Case(name, outcome, f"{status}: {state['why']}"))
    return cases


def _add_suite(root: ElementTree.Element, name: str, cases: Sequence[Case], started: str) -> None:
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ("failure", "error", "skipped")}
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {
            "name": f"headroom.{name}",
            "tests": str(len(cases)),
            "failures": str(count["failure"]),
            "errors": str(count["error"]),
            "skipped": str(count["skipped"]),
            "time": f"{sum(case.seconds for case in cases):.3f}",
            "timestamp": _clean(started.rstrip("Z")),
        },
    )
    for case in cases:
        element = ElementTree.SubElement(
            suite,
            "testcase",
            {"classname": f"headroom.{name}", "name": _clean(case.name), "time": f"{case.seconds:.3f}"},
        )
        if case.outcome == "passed":
            if case.message:
                ElementTree.SubElement(element, "system-out").text = _clean(case.message)
        else:
            ElementTree.SubElement(element, case.outcome, {"message": _clean(case.message)})


def _clean(text: str) -> str:
    """XML 1.0 allows neither most control characters nor halves of surrogate pairs."""
    return re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
