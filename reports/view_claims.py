"""verdicts.json's claims, arranged for the page: charts, tables and links, no judgement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

from reports import chart_claim, glossary, units
from reports.chart_claim import Claimed, Point, Series
from reports.chart_style import Chart, Table
from reports.glossary import Word
from reports.palette import AllocatorLooks
from reports.slug import slug

MAXIMUM_CHARTS = 6  # per part; the table has everything


@dataclass(frozen=True)
class VerdictView:
    word: Word
    device_class: str
    subject: str
    analogue: bool
    simulated: bool
    why: str
    would_change: str
    holds_for: str


@dataclass(frozen=True)
class PartView:
    name: str
    text: str
    claimed: str
    verdicts: Sequence[VerdictView]
    charts: Sequence[Chart]
    table: Table | None
    table_id: str
    note: str
    cells: Sequence[tuple[str, str]]  # link, label


@dataclass(frozen=True)
class ClaimView:
    id: str
    anchor: str
    data: dict[str, Any]  # texts as they stand in the file
    word: Word
    by_device: Sequence[tuple[Word, str, bool, str]]  # word, device class, analogue, why
    parts: Sequence[PartView]


class ArmIndex:
    """Which cell an experiment's arm ran."""

    def __init__(self, samples: Sequence[dict[str, Any]], matrix: Sequence[dict[str, Any]]) -> None:
        self._cells: dict[tuple[str, str], dict[str, Any]] = {}
        for record in (*samples, *matrix):
            self._cells.setdefault((record["experiment"], record["arm"]), record["cell"])

    def allocator(self, experiment: str, arm: str | None) -> str:
        cell = self._cells.get((experiment, arm or ""))
        return cell["allocator"] if cell else ""

    def cell_id(self, experiment: str, arm: str | None) -> str | None:
        cell = self._cells.get((experiment, arm or ""))
        return cell["cell_id"] if cell else None


def build_claims(claims: Sequence[dict[str, Any]], arms: ArmIndex, looks: AllocatorLooks) -> list[ClaimView]:
    return [_claim(claim, arms, looks) for claim in claims]


def _claim(claim: dict[str, Any], arms: ArmIndex, looks: AllocatorLooks) -> ClaimView:
    anchor = "claim-" + slug(claim["id"])
    return ClaimView(
        id=claim["id"],
        anchor=anchor,
        data=claim,
        word=glossary.verdict(claim["verdict"]),
        by_device=[
            (glossary.verdict(entry["verdict"]), entry["device_class"], entry["relation"] == "analogue", entry["why"])
            for entry in claim["verdict_by_device"]
        ],
        parts=[
            _part(f"{anchor}-p{number}", part, arms, looks) for number, part in enumerate(claim["parts"], start=1)
        ],
    )


def _part(anchor: str, part: dict[str, Any], arms: ArmIndex, looks: AllocatorLooks) -> PartView:
    evidence = [item for verdict in part["verdicts"] for item in verdict["evidence"]]
    all_series = _series(evidence, arms, looks)
    claimed = _claimed(part["claimed"])
    charts, note = _charts(anchor, all_series, claimed)
    return PartView(
        name=part["name"],
        text=part["text"],
        claimed=_claimed_text(part, all_series),
        verdicts=[
            VerdictView(
                word=glossary.verdict(verdict["verdict"]),
                device_class=verdict["device_class"],
                subject=verdict["subject"],
                analogue=verdict["relation"] == "analogue",
                simulated=verdict["simulated"],
                why=verdict["why"],
                would_change=verdict["would_change"],
                holds_for=verdict["holds_for"] or "",
            )
            for verdict in part["verdicts"]
        ],
        charts=charts,
        table=chart_claim.evidence_table(all_series) if all_series else None,
        table_id=f"{anchor}-table",
        note=note,
        cells=_cell_links(evidence, arms),
    )


def _charts(anchor: str, all_series: Sequence[Series], claimed: Claimed | None) -> tuple[list[Chart], str]:
    charts = []
    curves = [series for series in all_series if len(series.points) > 2]
    for number, series in enumerate(curves[:MAXIMUM_CHARTS], start=1):
        title = f"{series.name}: {series.metric}"
        charts.append(chart_claim.sweep_chart(f"{anchor}-s{number}", title, series, claimed))
    single = [series for series in all_series if len(series.points) <= 2 and _has_effect(series)]
    for number, relative in enumerate((True, False), start=1):
        rows = [series for series in single if series.relative is relative][:12]
        for unit in sorted({"" if relative else series.unit for series in rows}):
            group = [series for series in rows if relative or series.unit == unit]
            title = "Measured against claimed" if claimed else "Measured"
            charts.append(chart_claim.forest_chart(f"{anchor}-f{number}{slug(unit)}", title, group, claimed))
    hidden = max(0, len(curves) - MAXIMUM_CHARTS)
    note = f"{MAXIMUM_CHARTS} of {len(curves)} curves drawn; the table has all figures." if hidden else ""
    return charts, note


def _has_effect(series: Series) -> bool:
    return any(point.effect is not None for point in series.points)


def _series(evidence: Sequence[dict[str, Any]], arms: ArmIndex, looks: AllocatorLooks) -> list[Series]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for item in evidence:
        name, parameter = _experiment_name(item)
        key = (name, parameter, item["metric"], item["baseline_arm"] or "", item["treatment_arm"])
        groups.setdefault(key, []).append(item)
    series = []
    for (name, parameter, metric, baseline, treatment), items in groups.items():
        first = items[0]
        relative = first["comparison"]["scale"] == "log_ratio"
        series.append(
            Series(
                name=name,
                parameter=parameter,
                metric=glossary.metric(metric),
                unit=units.canonical(first["unit"], metric),
                relative=relative,
                baseline_arm=baseline,
                treatment_arm=treatment,
                baseline_look=looks[arms.allocator(first["experiment"], baseline)],
                treatment_look=looks[arms.allocator(first["experiment"], treatment)],
                points=[_point(item, relative) for item in items],
            )
        )
    return series


def _experiment_name(item: dict[str, Any]) -> tuple[str, str]:
    """ "S02/v100/batch=32" with point "32" → ("v100", "batch")."""
    steps = item["experiment"].split("/")
    parameter = ""
    if item["point"] and len(steps) > 1 and steps[-1].endswith("=" + item["point"]):
        parameter = steps.pop().partition("=")[0]
    return steps[-1], parameter


def _point(item: dict[str, Any], relative: bool) -> Point:
    comparison = item["comparison"]
    return Point(
        label=item["point"],
        baseline=item["baseline_value"],
        treatment=item["treatment_value"],
        effect=comparison["effect"] if relative and "effect" in comparison else comparison["theta"],
        ci90=_interval(comparison["ci90"], relative),
        ci95=_interval(comparison["ci95"], relative),
        exact=comparison["exact"],
        simulated=item["simulated"],
    )


def _interval(bounds: list[float | None] | None, relative: bool) -> tuple[float | None, float | None] | None:
    """From theta's scale to the reader's: ln ratios become relative changes."""
    if bounds is None:
        return None
    low, high = (math.expm1(bound) if relative and bound is not None else bound for bound in bounds)
    return low, high


def _claimed(claimed: dict[str, Any] | None) -> Claimed | None:
    if claimed is None or all(claimed[key] is None for key in ("value", "low", "high")):
        return None
    return Claimed(claimed["value"], claimed["low"], claimed["high"])


def _claimed_text(part: dict[str, Any], all_series: Sequence[Series]) -> str:
    claimed = part["claimed"]
    if claimed is None:
        return ""

    def text(value: float) -> str:
        if part["judge"] == "ratio" or not all_series:
            return units.effect(value)
        return units.value_in(value, all_series[0].unit)

    if claimed["value"] is not None:
        words = text(claimed["value"])
        if claimed["low"] is not None and claimed["high"] is not None:
            words += f", accepted from {text(claimed['low'])} to {text(claimed['high'])}"
        return words
    if claimed["low"] is not None and claimed["high"] is not None:
        return f"{text(claimed['low'])} to {text(claimed['high'])}"
    if claimed["low"] is not None:
        return f"at least {text(claimed['low'])}"
    if claimed["high"] is not None:
        return f"at most {text(claimed['high'])}"
    return {-1: "less", 1: "more"}.get(claimed["direction"], "")


def _cell_links(evidence: Sequence[dict[str, Any]], arms: ArmIndex) -> list[tuple[str, str]]:
    links: dict[str, str] = {}
    for item in evidence:
        name, parameter = _experiment_name(item)
        place = " ".join(word for word in (name, parameter, item["point"]) if word)
        for arm in (item["baseline_arm"], item["treatment_arm"]):
            cell_id = arms.cell_id(item["experiment"], arm)
            if cell_id is not None:
                links.setdefault("cell-" + slug(cell_id), f"{place}, {arm}")
    return list(links.items())
