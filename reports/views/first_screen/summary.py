"""The first screen: where the figures come from, and how far the run got."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from reports.charts.palette import split_spec
from reports.data import glossary, units
from reports.data.devices import NEARNESS, Traits, simulated, traits_of
from reports.data.glossary import Word
from reports.data.read import RunData
from reports.views.first_screen.findings import Finding, build_findings
from reports.views.page import Page

FIRST = 10  # findings that are shown at once


@dataclass(frozen=True)
class DeviceNote:
    name: str
    basis: str  # measured, simulated or virtual
    short: str
    sentence: str


@dataclass(frozen=True)
class Summary:
    question: str  # the question, and the answer if there is one
    preview: str  # the preview of a link to the page
    findings: Sequence[Finding]
    surprises: Sequence[str]
    trust: str  # whether times can be relied on
    devices: Sequence[DeviceNote]
    warnings: Sequence[str]
    command: str
    commit: str
    status_counts: Sequence[tuple[str, int]]

    @property
    def first(self) -> Sequence[Finding]:
        return self.findings[:FIRST]

    @property
    def rest(self) -> Sequence[Finding]:
        return self.findings[FIRST:]

    @property
    def rest_counts(self) -> Sequence[tuple[Word, int]]:
        return list(Counter(finding.word for finding in self.rest).items())

    @property
    def bases(self) -> str:
        return units.listed(device.short for device in self.devices)


def build_summary(page: Page) -> Summary:
    data, verdicts = page.data, page.verdicts
    findings = build_findings(page)
    question = _question(page)
    return Summary(
        question=question,
        preview=" ".join([question, *(f"{finding.title}: {finding.word.word}. {finding.told}" for finding in findings[:2])]),
        findings=findings,
        surprises=verdicts.get("surprises", [])[:3],
        trust=_trust(page),
        devices=_devices(data),
        warnings=_warnings(data, page["cells"].alerts if page["cells"] else 0),
        command=_command(data.run),
        commit=_commit(data.run["headroom"]),
        status_counts=sorted(Counter(sample["status"] for sample in data.samples).items()),
    )


def _question(page: Page) -> str:
    if len(page.claims) == 1:
        return f"Does it hold? “{page.claims[0]['title']}”"
    if page.claims:
        return f"Do {len(page.claims)} published claims about training memory hold?"
    if any(entry["comparisons"] for entry in page.entries):
        configurations = len({entry["cell"]["cell_id"] for entry in page.entries})
        return f"How do {configurations} configurations compare in memory and speed?"
    return page.verdicts.get("headline") or "This run has not been judged yet."


def _trust(page: Page) -> str:
    """Whether the times of this run can be relied on; its bytes do not depend on that."""
    instrument = page["instrument"]
    if instrument is None:
        return ""
    if not any(sample["step_time_ns"] and not simulated(sample["cell"]) for sample in page.measured):
        return "No training step was timed in this run: there are no times to trust. Bytes are exact."
    words = {instrument.sensitivity.tone, instrument.calibration.tone}
    if words == {"good"}:
        return "Yes: known slowdowns were detected, and identical runs seldom looked different."
    if "bad" in words:
        return "No: a check of the time measurement failed. Bytes are exact all the same."
    checks = f"{glossary.as_sentence(instrument.sensitivity_why)} {glossary.as_sentence(instrument.calibration_why)}"
    if instrument.sensitivity.tone != "good":
        return f"Not checked enough: {checks} `headroom selftest` checks them. Bytes are exact all the same."
    return f"{'With care' if instrument.false_alarms else 'Yes, as far as checked'}: {checks} Bytes are exact all the same."


def _command(run: dict[str, Any]) -> str:
    words = list(run["argv"])
    if not words or words[0].rsplit("/", 1)[-1] != "headroom":
        words.insert(0, "headroom")
    if words[1:] == ["run"]:
        words.append(run["suite"])  # the default suite, which may change later
    return shlex.join(words)


def _devices(data: RunData) -> list[DeviceNote]:
    present: dict[tuple[str, Traits], set[str]] = {}
    for sample in data.samples:
        if sample["status"] not in ("ok", "oom"):
            continue  # a configuration that could not run has no figure
        cell = sample["cell"]
        present.setdefault((cell["device_class"], traits_of(cell)), set()).add(cell["device"])
    machine = data.run["machine"]
    found = []
    for (name, traits), devices in present.items():
        if traits.simulated:
            sentence = f"Bytes simulated for {_cards(devices)}: exact under the stated rules, nothing was computed."
        elif traits.virtual:
            sentence = (
                f"A framework's own code and allocator on virtual {_cards(devices)}: bytes are its own, "
                "nothing was computed, and there are no times."
            )
        elif traits.gpu:
            sentence = f"Times and bytes measured on a GPU ({machine['gpu'] or 'unnamed'})."
        else:
            sentence = f"Times and bytes measured on this machine's CPU ({machine['cpu']}): not a GPU."
        short = traits.basis if traits.basis != "measured" else f"measured on {'a GPU' if traits.gpu else 'this CPU'}"
        found.append(DeviceNote(name, traits.basis, short, sentence))
    return sorted(found, key=lambda note: NEARNESS.index(note.basis))


def _cards(devices: Iterable[str]) -> str:
    """ "meta(card=v100-16gb)" → "v100-16gb"; "meta(capacity=1GiB)" → "a device of 1GiB"."""
    names = {split_spec(device).parameters or device for device in devices}
    return units.listed(sorted(name.removeprefix("card=").replace("capacity=", "a device of ") for name in names), most=4)


def _warnings(data: RunData, alerts: int) -> list[str]:
    warnings = list(data.notes)
    run = data.run
    if run["status"] != "finished":
        state = "was interrupted" if run["status"] == "interrupted" else "had not finished when this page was made"
        warnings.append(
            f"This run {state}: {len(data.samples)} of {run['planned_samples']} planned samples are here. "
            "`headroom run --resume` with its directory continues it."
        )
    if run["headroom"]["dirty"]:
        warnings.append("The program was built from a working tree with uncommitted changes.")
    if alerts:
        warnings.append(
            f"Recorded bytes contradict each other in {alerts} configuration{'s' if alerts > 1 else ''}: do not rely on "
            "charts with this mark."
        )
    return warnings


def _commit(headroom: dict[str, Any]) -> str:
    commit = headroom["commit"]
    return (commit[:12] + (" + changes" if headroom["dirty"] else "")) if commit else "not known"
