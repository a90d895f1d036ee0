"""The claims of verdicts.json, arranged for the page: charts, tables and links, no judgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.evidence import ArmIndex, Claimed, Series, claimed_of, experiment_name, series_of
from reports.charts.evidence_text import evidence_table
from reports.charts.forest import forest_chart
from reports.charts.palette import AllocatorLooks
from reports.charts.style import Chart, Table
from reports.charts.sweep import sweep_chart
from reports.data import glossary, units
from reports.data.devices import basis
from reports.data.glossary import Word
from reports.data.slug import slug
from reports.views.page import Section

MAXIMUM_CURVES = 6  # charts of sweeps per part; the table has everything
MAXIMUM_ROWS = 10  # of single measurements in one chart


@dataclass(frozen=True)
class VerdictView:
    word: Word
    device_class: str
    subject: str
    analogue: bool
    basis: str  # measured, simulated or virtual
    why: str
    would_change: str
    holds_for: str


@dataclass(frozen=True)
class PartView:
    anchor: str
    decides: bool  # the part on which the claim's verdict rests comes first
    name: str
    text: str
    claimed: str
    verdicts: Sequence[VerdictView]
    charts: Sequence[Chart]
    rest: Table | None  # evidence that no chart shows: too much, or without a figure
    rest_id: str
    cells: Sequence[tuple[str, str]]  # link, label


@dataclass(frozen=True)
class ClaimView:
    id: str
    anchor: str
    data: dict[str, Any]  # texts as they stand in the file
    word: Word
    by_device: Sequence[tuple[Word, str, bool, str, str]]  # word, device class, analogue, basis, why
    parts: Sequence[PartView]


def build_claims(claims: Sequence[dict[str, Any]], arms: ArmIndex, looks: AllocatorLooks) -> list[ClaimView]:
    return [_claim(claim, arms, looks) for claim in claims]


def _claim(claim: dict[str, Any], arms: ArmIndex, looks: AllocatorLooks) -> ClaimView:
    anchor = "claim-" + slug(claim["id"])
    deciding = deciding_part(claim)
    return ClaimView(
        id=claim["id"],
        anchor=anchor,
        data=claim,
        word=glossary.verdict(claim["verdict"]),
        by_device=[
            (
                glossary.verdict(entry["verdict"]),
                entry["device_class"],
                entry["relation"] == "analogue",
                basis(entry),
                entry["why"],
            )
            for entry in claim["verdict_by_device"]
        ],
        parts=[
            _part(f"{anchor}-p{number}", part, part is deciding, arms, looks)
            for number, part in enumerate(claim["parts"], start=1)
        ],
    )


def deciding_part(claim: dict[str, Any]) -> dict[str, Any] | None:
    """The first part on which the claim's verdict rests; None if it has no parts."""
    numbers = [part for part in claim["parts"] if part.get("kind") == "number"] or claim["parts"]
    # An analogue decides only if there is nothing else. A part without a figure, which the run may have left out,
    # decides only if no part has one.
    own = [part for part in numbers if _evidence_of_subject(part)]
    told = [part for part in own if any(has_figure(item) for item in _evidence_of_subject(part))]
    return next(iter(told or own or numbers), None)


def has_figure(evidence: dict[str, Any]) -> bool:
    return evidence["comparison"]["theta"] is not None


def _evidence_of_subject(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for verdict in part["verdicts"] if verdict["relation"] != "analogue" for item in verdict["evidence"]]


def _part(anchor: str, part: dict[str, Any], decides: bool, arms: ArmIndex, looks: AllocatorLooks) -> PartView:
    evidence = [item for verdict in part["verdicts"] for item in verdict["evidence"]]
    all_series = series_of(evidence, arms, looks)
    charts, drawn = _charts(anchor, all_series, claimed_of(part["claimed"]))
    rest = [series for series in all_series if not any(series is other for other in drawn)]
    return PartView(
        anchor=anchor,
        decides=decides,
        name=part["name"],
        text=part["text"],
        claimed=claimed_text(part, all_series),
        verdicts=[
            VerdictView(
                word=glossary.verdict(verdict["verdict"]),
                device_class=verdict["device_class"],
                subject=verdict["subject"],
                analogue=verdict["relation"] == "analogue",
                basis=basis(verdict),
                why=verdict["why"],
                would_change=verdict["would_change"],
                # The sentence often has the range already.
                holds_for=range_ if (range_ := verdict["holds_for"] or "") not in verdict["why"] else "",
            )
            for verdict in part["verdicts"]
        ],
        charts=charts,
        rest=evidence_table(rest) if rest else None,
        rest_id=f"{anchor}-rest",
        cells=_cell_links(evidence, arms),
    )


def _charts(
    anchor: str, all_series: Sequence[Series], claimed: Claimed | None
) -> tuple[list[Chart], list[Series]]:
    """One chart for each sweep, one for all single measurements of a unit, and the evidence that they show."""
    swept: dict[tuple[object, ...], list[Series]] = {}
    single: dict[str, list[Series]] = {}
    for series in all_series:
        if not series.has_effect:
            continue
        if len(series.points) > 2:
            unit = "" if series.relative else series.unit
            swept.setdefault((series.name, series.baseline_arm, series.treatment_arm, unit), []).append(series)
        else:
            single.setdefault("" if series.relative else f"in {series.unit}", []).append(series)
    charts: list[Chart] = []
    drawn: list[Series] = []
    for number, group in enumerate(list(swept.values())[:MAXIMUM_CURVES], start=1):
        title = f"{group[0].name}: {group[0].words}" if len(group) == 1 else group[0].name
        charts.append(sweep_chart(f"{anchor}-s{number}", title, group, claimed))
        drawn += group
    title = "Measured against claimed" if claimed else "Measured"
    for number, group in enumerate(single.values(), start=1):
        charts.append(forest_chart(f"{anchor}-f{number}", title, group[:MAXIMUM_ROWS], claimed))
        drawn += group[:MAXIMUM_ROWS]
    return charts, drawn


def claimed_text(part: dict[str, Any], all_series: Sequence[Series]) -> str:
    claimed = part["claimed"]
    if claimed is None:
        return ""

    def text(value: float) -> str:
        if part["judge"] == "ratio" or not all_series:
            return units.effect(value)
        return units.value_in(value, all_series[0].unit)

    low, high = claimed["low"], claimed["high"]
    if claimed["value"] is not None:
        words = text(claimed["value"])
        if low is not None and high is not None:
            words += f", accepted from {text(low)} to {text(high)}"
        return words
    if low is not None and high is not None:
        return f"{text(low)} to {text(high)}"
    if low is not None:
        return f"at least {text(low)}"
    if high is not None:
        return f"at most {text(high)}"
    return {-1: "less", 1: "more"}.get(claimed["direction"], "")


def _cell_links(evidence: Sequence[dict[str, Any]], arms: ArmIndex) -> list[tuple[str, str]]:
    links: dict[str, str] = {}
    for item in evidence:
        name, parameter = experiment_name(item)
        place = " ".join(word for word in (name, parameter, item["point"]) if word)
        for arm in (item["baseline_arm"], item["treatment_arm"]):
            cell_id = arms.cell_id(item["experiment"], arm)
            if cell_id is not None:
                links.setdefault("cell-" + slug(cell_id), f"{place}, {arm}")
    return list(links.items())


SECTION = Section(
    address="claims",
    title="Claims",
    about="each claim with its evidence and what would change the verdict",
    place=10,
    build=lambda page: build_claims(page.claims, page.arms, page.looks),
    count=len,
    charts=True,
)
