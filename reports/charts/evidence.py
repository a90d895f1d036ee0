"""A claim's evidence as plain data: series over a sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

from reports.charts.palette import PLAIN, AllocatorLooks, Look
from reports.data import glossary, units

Bounds = tuple[float | None, float | None] | None


@dataclass(frozen=True)
class Point:
    """One comparison. Effects are relative changes, or in the metric's unit when its series is
    not relative."""

    label: str
    experiment: str
    baseline: float | None
    treatment: float | None
    effect: float | None
    ci90: Bounds
    ci95: Bounds
    exact: bool
    simulated: bool
    virtual: bool
    verdict: str
    why: str


@dataclass(frozen=True)
class Series:
    """The evidence of one experiment on one metric, in the order of the sweep."""

    name: str  # of the experiment
    parameter: str  # the parameter that the sweep varies
    metric: str  # as in the file
    unit: str
    relative: bool
    baseline_arm: str  # empty if the treatment's own value is judged
    treatment_arm: str
    baseline_look: Look
    treatment_look: Look
    points: Sequence[Point]

    @property
    def words(self) -> str:
        return glossary.metric(self.metric)

    @property
    def has_effect(self) -> bool:
        return any(point.effect is not None for point in self.points)


@dataclass(frozen=True)
class Claimed:
    """The claimed range; None leaves a side open."""

    value: float | None
    low: float | None
    high: float | None


class ArmIndex:
    """The configuration that a variant of an experiment ran."""

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


def series_of(evidence: Sequence[dict[str, Any]], arms: ArmIndex, looks: AllocatorLooks) -> list[Series]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for item in evidence:
        key = (*experiment_name(item), item["metric"], item["baseline_arm"] or "", item["treatment_arm"])
        groups.setdefault(key, []).append(item)
    series = []
    for (name, parameter, metric, baseline, treatment), items in groups.items():
        first = items[0]
        relative = first["comparison"]["scale"] == "log_ratio"
        treatment_look = looks[arms.allocator(first["experiment"], treatment)]
        baseline_look = looks[arms.allocator(first["experiment"], baseline)]
        if baseline_look == treatment_look:  # variants that differ on another axis
            baseline_look = PLAIN
        series.append(
            Series(
                name=name,
                parameter=parameter,
                metric=metric,
                unit=units.canonical(first["unit"], metric),
                relative=relative,
                baseline_arm=baseline,
                treatment_arm=treatment,
                baseline_look=baseline_look,
                treatment_look=treatment_look,
                points=[_point(item, relative) for item in items],
            )
        )
    return series


def experiment_name(item: dict[str, Any]) -> tuple[str, str]:
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
        experiment=item["experiment"],
        baseline=item["baseline_value"],
        treatment=item["treatment_value"],
        effect=comparison["effect"] if relative and "effect" in comparison else comparison["theta"],
        ci90=_interval(comparison["ci90"], relative),
        ci95=_interval(comparison["ci95"], relative),
        exact=comparison["exact"],
        simulated=item["simulated"],
        virtual=item.get("basis") == "virtual",
        verdict=comparison["verdict"],
        why=item["why"],
    )


def _interval(bounds: list[float | None] | None, relative: bool) -> Bounds:
    """Converts theta's scale to the reader's: logarithms of ratios become relative changes."""
    if bounds is None:
        return None
    low, high = (math.expm1(bound) if relative and bound is not None else bound for bound in bounds)
    return low, high


def claimed_of(claimed: dict[str, Any] | None) -> Claimed | None:
    if claimed is None or all(claimed[key] is None for key in ("value", "low", "high")):
        return None
    return Claimed(claimed["value"], claimed["low"], claimed["high"])
